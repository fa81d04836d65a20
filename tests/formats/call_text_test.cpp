// Names with arguments, and numbers read strictly.
#include "formats/call_text.hpp"

#include "tests/catch.hpp"

namespace call_text_test {

using namespace numemu;

TEST_CASE("call text: a name and its arguments", "[fast]") {
  const CallText call = parse_call(" delayed( 16 , mse ) ");
  CHECK(call.name == "delayed");
  CHECK(call.arguments == std::vector<std::string>{"16", "mse"});
  CHECK(parse_call("dynamic").arguments.empty());
  CHECK(parse_call("dynamic()").arguments == std::vector<std::string>{""});
  CHECK(parse_call("f(a,)").arguments == std::vector<std::string>{"a", ""});
  CHECK(parse_call("f(g(1,2),h(i(3),4),5)").arguments ==
        std::vector<std::string>{"g(1,2)", "h(i(3),4)", "5"});
}

TEST_CASE("call text: what is no call is a name as a whole", "[fast]") {
  for (const char* text : {"f(1", "(1)", "f(1)x", ""}) {
    INFO(text);
    CHECK(parse_call(text).name == text);
    CHECK(parse_call(text).arguments.empty());
  }
}

TEST_CASE("call text: numbers take the whole text", "[fast]") {
  CHECK(number_argument("99.9") == 99.9);
  CHECK(number_argument("1e3") == 1000.0);
  for (const char* text : {"", "1x", " 1", "inf", "nan", "1e999", "0x10"})
    CHECK_FALSE(number_argument(text));
  CHECK(whole_argument("16", 1, 16) == 16);
  for (const char* text : {"0", "17", "1.0", "-1", "", "1e1", "99999999999999999999"})
    CHECK_FALSE(whole_argument(text, 1, 16));
}

}  // namespace call_text_test
