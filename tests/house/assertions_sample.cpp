// Assertions that pass, fail and stop; assertions_test.sh compares what they report.
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.hpp"

namespace {

using Catch::Contains;

enum class Colour { red = 3, green = 4 };

struct Field {
  unsigned wide : 5;
  bool set : 1;
};

[[noreturn]] int fails(const std::string& why) { throw std::runtime_error(why); }

struct Noted {
  std::string text;
  ~Noted() { WARN("destroyed: " << text); }
};

}  // namespace

TEST_CASE("everything passes", "[fast]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string text = "text";
  const std::vector<int> numbers = {1, 2};
  const std::unique_ptr<int> nothing;
  const int* null = nullptr;
  const Field field = {17, true};
  const std::size_t three = 3;
  CHECK(three == 3);
  CHECK(-1 == ~0U);
  CHECK_FALSE(nan == nan);
  CHECK(nan != nan);
  CHECK_FALSE(nan < 1);
  CHECK(0.1 + 0.2 == Approx(0.3));
  CHECK(Approx(1) != 1.1);
  CHECK(text == "text");
  CHECK("text" == text);
  CHECK(std::string_view(text) == text);
  CHECK(numbers == std::vector<int>{1, 2});
  CHECK(std::optional<int>(4) == 4);
  CHECK(std::optional<int>() == std::nullopt);
  CHECK(Colour::red != Colour::green);
  CHECK(Colour::red < Colour::green);
  CHECK(field.set);
  CHECK(field.wide == 17);
  CHECK(nothing == nullptr);
  CHECK(null == nullptr);
  CHECK_FALSE(nothing);
  CHECK(std::vector<bool>{true}[0] == true);
  CHECK((three == 3 && !text.empty()));
  REQUIRE(text.size() >= 4);
  REQUIRE_FALSE(text.empty());
  CHECK_THAT(text, Contains("ex") && !Contains("oo"));
  CHECK_THAT(1.0, Catch::WithinAbs(1.1, 0.2));
  CHECK_THROWS(fails("bad"));
  CHECK_THROWS_AS(fails("bad"), std::exception);
  CHECK_THROWS_WITH(fails("bad"), "bad");
  CHECK_THROWS_WITH(fails("bad"), Contains("a") && Contains("b"));
  CHECK_NOTHROW(text.at(0));
  CHECK([&] {
    CHECK(three == 3);
    return true;
  }());
}

TEST_CASE("values", "[fast]") {
  const std::string text = "te\"xt";
  const std::vector<int> numbers = {1, 2};
  INFO("number " << 7 << ", " << 0.5 << ", " << text << ", " << std::hex << 255);
  CHECK(text == "text");
  CHECK(numbers.size() == 3);
  CHECK(numbers == std::vector<int>{1, 3});
  CHECK(Colour::red == Colour::green);
  CHECK(1.5 < std::optional<double>());
  CHECK_FALSE(numbers.size() == 2);
  CHECK(numbers.empty());
  CHECK_THAT(text, Contains("a") && !Contains("b"));
  CHECK_THAT(2.0, Catch::WithinAbs(1, 0.5));
}

TEST_CASE("stops", "[fast]") {
  CHECK(1 == 2);
  CAPTURE(1 + 4);
  REQUIRE(2 == 3);
  CHECK(3 == 4);
}

TEST_CASE("stops at a matcher", "[fast]") {
  REQUIRE_THAT(std::string("abc"), Contains("d"));
  CHECK(3 == 4);
}

TEST_CASE("stops at an exception", "[fast]") {
  const Noted noted{"before"};
  REQUIRE_THROWS_WITH(fails("bad"), "good");
  CHECK(3 == 4);
}

TEST_CASE("stops inside of an expression", "[fast]") {
  CHECK_THROWS_WITH(
      [] {
        REQUIRE(2 == 3);
        return 0;
      }(),
      "bad");
  CHECK(3 == 4);
}

TEST_CASE("exceptions", "[fast]") {
  INFO("while throwing");
  CHECK_THROWS_WITH(fails("bad"), "good");
  CHECK_THROWS_WITH(fails("bad"), Contains("oo"));
  CHECK_THROWS_WITH(std::string(), "nothing");
  CHECK_THROWS_AS(fails("bad"), std::logic_error);
  CHECK_THROWS_AS(std::string(), std::logic_error);
  CHECK_THROWS(std::string());
  CHECK_NOTHROW(fails("bad"));
}

TEST_CASE("unexpected in an assertion", "[fast]") {
  INFO("while evaluating");
  CHECK(1 == 1);
  CHECK(fails("bad") == 2);
  CHECK(3 == 4);
}

TEST_CASE("unexpected after an assertion", "[fast]") {
  CHECK(1 == 1);
  fails("bad");
  CHECK(3 == 4);
}

TEST_CASE("unexpected before any assertion", "[fast]") { fails("bad"); }

TEST_CASE("unexpected in a section", "[fast]") {
  CHECK(1 == 1);
  SECTION("inner") { fails("bad"); }
}
