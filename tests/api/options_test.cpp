#include "api/options.hpp"

#include <cstdint>
#include <set>
#include <type_traits>
#include <variant>

#include "api/networks.hpp"
#include "api/studies.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"
#include "tests/catch.hpp"

namespace options_test {

using namespace numemu;

namespace {

const api::Option& named(const std::vector<api::Option>& options, const std::string& name) {
  return find_named("option", name, options, &api::Option::name);
}

template <class Request>
void require_declared() {
  Request request;
  std::set<std::string> names;
  for (const api::Option& option : api::options_of(request)) {
    CAPTURE(option.name);
    CHECK(names.insert(option.name).second);
    CHECK_FALSE(option.help.empty());
    CHECK(option.least < option.most);
    std::visit(
        [&]<class T>(const T& target) {
          if constexpr (std::is_pointer_v<T>) {
            // A member of this request, or what it owns.
            const auto at = reinterpret_cast<std::uintptr_t>(target);
            const auto begin = reinterpret_cast<std::uintptr_t>(&request);
            CHECK((at >= begin && at < begin + sizeof request));
          } else {
            CHECK(target);
          }
        },
        option.target);
  }
}

}  // namespace

TEST_CASE("Every option of a request is declared once and leads to a member", "[fast]") {
  require_declared<api::OpenRequest>();
  require_declared<api::EvaluateRequest>();
  require_declared<api::InferRequest>();
  require_declared<api::TrainRequest>();
  require_declared<api::TuneRequest>();
  require_declared<api::SweepRequest>();
  require_declared<api::ExperimentRequest>();
}

TEST_CASE("Options set members, those with a text of their own too", "[fast]") {
  api::TrainRequest train;
  const std::vector<api::Option> options = api::options_of(train);
  *std::get<std::int64_t*>(named(options, "epochs").target) = 3;
  CHECK(train.train.epochs == 3);
  std::get<api::TakeText>(named(options, "augment").target)("shift=2,flip");
  REQUIRE(train.augment);
  CHECK(train.augment->shift == 2);
  CHECK(train.augment->flip);
  CHECK_THROWS_AS(std::get<api::TakeText>(named(options, "augment").target)("turn=2"), Error);
  std::get<api::TakeText>(named(options, "image_sizes").target)("32:0.5,16:0.5");
  CHECK(train.train.sizes.shares.size() == 2);
  api::SweepRequest sweep;
  std::get<api::TakeFlag>(named(api::options_of(sweep), "keep_old").target)();
  CHECK(sweep.existing == api::Existing::keep_old);
  std::get<api::TakeText>(named(api::options_of(sweep), "gate").target)("0.99");
  REQUIRE(sweep.gate);
  CHECK(sweep.gate->bound == 0.99);
}

}  // namespace options_test
