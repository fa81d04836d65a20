// Settings by size, overrides and their refusals.
#include "experiments/engine/settings.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace settings_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;
using Texts = std::vector<std::string>;

namespace {

const SettingList kSettings = {{"images", "5", "50", "500", "test samples"},
                               {"formats", "int4", "int4,int8", "int4", "formats"}};

Settings with(const Texts& overrides, Size size = Size::smoke) {
  return Settings(kSettings, size, overrides);
}

}  // namespace

TEST_CASE("sizes by name", "[fast]") {
  CHECK(parse_size("smoke") == Size::smoke);
  CHECK(parse_size("default") == Size::standard);
  CHECK(parse_size("full") == Size::full);
  CHECK_THAT(message_of([] { parse_size("ful"); }), Catch::Contains("did you mean 'full'"));
  CHECK_FALSE(message_of([] { parse_size(""); }).empty());
}

TEST_CASE("every setting has a value by size that an override replaces", "[fast]") {
  CHECK(with({}).text("images") == "5");
  CHECK(with({}, Size::standard).text("images") == "50");
  CHECK(with({}, Size::full).integer("images", 1, 1000) == 500);
  CHECK(with({}).values().size() == 2);
  CHECK(with({"images=7", "images=8"}).text("images") == "8");
  CHECK(with({"formats="}).text("formats").empty());
  CHECK(with({"formats=a=b"}).text("formats") == "a=b");
  CHECK(message_of([] { with({"images"}); }) == "--set: expected key=value, not 'images'");
  CHECK_THAT(message_of([] { with({"image=4"}); }),
             Catch::StartsWith("--set: ") && Catch::Contains("did you mean 'images'"));
  CHECK_THAT(message_of([] { with({"=4"}); }), Catch::StartsWith("--set: "));
}

TEST_CASE("whole numbers lie in their range and are nothing else", "[fast]") {
  CHECK(with({"images=9"}).integer("images", 1, 9) == 9);
  CHECK(with({"images=-2"}).integer("images", -2, 9) == -2);
  for (const char* wrong :
       {"0", "10", "-1", "x", "", "1.5", "1e2", " 4", "4 ", "+4", "0x4", "99999999999999999999"}) {
    CHECK(message_of([&] { with({std::string("images=") + wrong}).integer("images", 1, 9); }) ==
          std::string("--set: images: expected a whole number in 1 to 9, not '") + wrong + "'");
  }
}

TEST_CASE("numbers lie in their range and are nothing else", "[fast]") {
  const auto number = [](const std::string& text) {
    return with({"images=" + text}).number("images", -0.5, 9.25);
  };
  CHECK(number("9.25") == 9.25);
  CHECK(number("-0.5") == -0.5);
  CHECK(number("1e-3") == 0.001);
  CHECK(number("7") == 7);
  for (const char* wrong : {"-0.6", "9.3", "nan", "inf", "-inf", "x", "", "1.5.2", " 4", "4 ", "+4",
                            "0x1p1", "1e999"}) {
    CHECK(message_of([&] { number(wrong); }) ==
          std::string("--set: images: expected a number in -0.5 to 9.25, not '") + wrong + "'");
  }
}

TEST_CASE("lists are split at commas outside parentheses", "[fast]") {
  const auto list = [](const std::string& text) {
    return with({"formats=" + text}).list("formats");
  };
  CHECK(list("int4") == Texts{"int4"});
  CHECK(list("int4,int8") == Texts{"int4", "int8"});
  CHECK(list(" int4 , group( int4 , 32, float16 ),mxfp4") ==
        Texts{"int4", "group(int4,32,float16)", "mxfp4"});
  for (const char* wrong : {"", ",", "int4,", ",int4", "int4,,int8", " "}) {
    CHECK(message_of([&] { list(wrong); }) ==
          std::string("--set: formats: expected names separated by commas, not '") + wrong + "'");
  }
}

}  // namespace settings_test
