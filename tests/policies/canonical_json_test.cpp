// Canonical JSON against the examples and the number table of RFC 8785.
#include "policies/canonical_json.hpp"

#include <cmath>
#include <cstring>

#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"

namespace canonical_json_test {

using namespace numemu::policies;
using numemu::Json;

TEST_CASE("numbers are printed as ECMAScript prints them", "[fast]") {
  // RFC 8785, appendix B.
  const std::pair<std::uint64_t, const char*> samples[] = {
      {0x0000000000000000, "0"},
      {0x8000000000000000, "0"},
      {0x0000000000000001, "5e-324"},
      {0x8000000000000001, "-5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"},
      {0x4340000000000000, "9007199254740992"},
      {0xc340000000000000, "-9007199254740992"},
      {0x4430000000000000, "295147905179352830000"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"},
      {0x44b52d02c7e14af6, "1e+23"},
      {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"},
      {0x444b1ae4d6e2ef4f, "999999999999999900000"},
      {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
      {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"},
      {0x41b3de4355555554, "333333333.33333325"},
      {0x41b3de4355555555, "333333333.3333333"},
      {0x41b3de4355555556, "333333333.3333334"},
      {0x41b3de4355555557, "333333333.33333343"},
      {0xbecbf647612f3696, "-0.0000033333333333333333"},
      {0x43143ff3c1cb0959, "1424953923781206.2"}};
  for (const auto& [bits, text] : samples) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    CHECK(ecmascript_number(value) == text);
  }
  CHECK_THROWS_AS(ecmascript_number(HUGE_VAL), numemu::Error);
}

TEST_CASE("keys are sorted by UTF-16 code units and strings escaped as in RFC 8785", "[fast]") {
  const Json json = Json::parse(
      R"({"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",)"
      R"("1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"})");
  const std::string text = canonical_json(json);
  CHECK(text.find("Carriage") < text.find("One"));
  CHECK(text.find("One") < text.find("Control"));
  CHECK(text.find("Control") < text.find("Latin"));
  CHECK(text.find("Latin") < text.find("Euro"));
  CHECK(text.find("Euro") < text.find("Emoji"));  // surrogates sort below U+FB33, bytes would not
  CHECK(text.find("Emoji") < text.find("Hebrew"));
  CHECK(
      canonical_json(Json::parse(
          R"({"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"literals":[null,true,false]})")) ==
      R"({"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27]})");
}

TEST_CASE("significant digits round to nearest", "[fast]") {
  CHECK(significant(123456.789, 3) == 123000);
  CHECK(significant(-0.00123456, 4) == -0.001235);
  CHECK(significant(0, 4) == 0);
}

}  // namespace canonical_json_test
