// Options as arguments of a name: read in order or by key, written without defaults at the end.
#include "formats/storage/options.hpp"

#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::options_test {
namespace {

struct Every final : OptionSet {
  double share = 0.5;
  std::int64_t count = 3;
  bool exact = false;
  std::string word = "mean";
  std::vector<Option> list() override {
    return {{"share", "a share", &share, 0, 1},
            {"count", "a count", &count, 1, 9},
            {"exact", "a flag", &exact},
            {"word", "a word", &word, 0, 0, {"mean", "median"}}};
  }
};

std::string canonical(const std::string& text) {
  Every given, usual;
  read_arguments(parse_call(text), given.list(), "every");
  return call_text("every", given, usual);
}

TEST_CASE("arguments are read in order or by key", "[fast]") {
  CHECK(canonical("every") == "every");
  CHECK(canonical("every(0.5,3,false,mean)") == "every");
  CHECK(canonical("every(0.25)") == "every(0.25)");
  CHECK(canonical("every(word=median)") == "every(0.5,3,false,median)");
  CHECK(canonical("every(exact=true, share=1e-7)") == "every(1e-7,3,true)");
  CHECK(canonical("every(0.25,count=4)") == canonical("every(count=4,share=0.25)"));
}

TEST_CASE("arguments that do not serve are refused with their key", "[fast]") {
  const auto refused = [](const std::string& text, const std::string& message) {
    CHECK_THROWS_WITH(canonical(text), Catch::Contains(message));
  };
  refused("every(2)", "every: share: expected a number from 0 to 1");
  refused("every(count=x)", "every: count: expected an integer from 1 to 9");
  refused("every(exact=yes)", "every: exact: expected true or false");
  refused("every(word=mode)", "every: word: unknown word 'mode'");
  refused("every(cuont=1)", "every: unknown option 'cuont'; did you mean 'count'?");
  refused("every(0.5,3,true,mean,7)", "every: expected at most 4 options, found '7'");
  refused("every(share=0.5,share=0.25)", "every: expected share once");
  refused("every(count=3,4)", "every: expected count once");
}

}  // namespace
}  // namespace numemu::options_test
