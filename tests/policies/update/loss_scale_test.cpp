// Loss scales: none, fixed, dynamic.
#include "formats/error.hpp"
#include "policies/state_bytes.hpp"
#include "tests/catch.hpp"
#include "tests/policies/update/two_layers.hpp"

namespace loss_scale_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

/// The factor of a recipe with that key, as training uses it.
class Scaled {
 public:
  explicit Scaled(const std::string& scale)
      : numerics_(update_recipe(R"j("loss_scale": ")j" + scale + "\""), graph_) {}

  float value() { return numerics_.loss_scale({}); }
  bool accept(const std::vector<net::Tensor>& gradients) {
    numerics_.worker_gradients({}, gradients);
    return numerics_.accept_gradients({});
  }
  std::uint64_t skipped() const {
    for (const auto& [name, bytes] : state_of(numerics_))
      if (name == "recipe/loss_scale") return from_bytes(name, bytes).at(2);
    return 99;
  }
  RecipeNumerics& numerics() { return numerics_; }

 private:
  net::Graph graph_ = two_layers();
  RecipeNumerics numerics_;
};

}  // namespace

TEST_CASE("a dynamic loss scale halves on overflow and doubles after its interval", "[fast]") {
  Scaled scaler("dynamic(1024,3)");
  const std::vector<net::Tensor> good = {net::Tensor({4}, 1)};
  std::vector<net::Tensor> bad = good;
  bad[0].data[3] = -1.0f / 0.0f;
  CHECK(scaler.accept(good));
  CHECK_FALSE(scaler.accept(bad));
  CHECK(scaler.value() == 512);
  CHECK(scaler.skipped() == 1);
  CHECK((scaler.accept(good) && scaler.accept(good)));
  CHECK(scaler.value() == 512);
  Scaled resumed("dynamic(1,3)");
  resumed.numerics().load_state(state_of(scaler.numerics()));
  CHECK(resumed.accept(good));
  CHECK(resumed.value() == 1024);
  CHECK(resumed.skipped() == 1);
  bad[0].data[3] = 0.0f / 0.0f;
  CHECK_FALSE(resumed.accept(bad));
  CHECK_THROWS_WITH(resumed.numerics().load_state({{"recipe/loss_scale", "12345678"}}),
                    "state recipe/loss_scale: expected 3 numbers, found 1");
}

TEST_CASE("no loss scale and a fixed one skip nothing", "[fast]") {
  const std::vector<net::Tensor> bad = {net::Tensor({1}, 1.0f / 0.0f)};
  Scaled none("none"), fixed("static(8)");
  CHECK(none.value() == 1);
  CHECK(fixed.value() == 8);
  CHECK((none.accept(bad) && fixed.accept(bad)));
  CHECK(fixed.value() == 8);
}

}  // namespace loss_scale_test
