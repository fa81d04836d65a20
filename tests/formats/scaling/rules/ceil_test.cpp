// Scale rule ceil: the smallest power of two that never saturates.
#include "tests/catch.hpp"
#include "tests/formats/scaling/rules/exponents.hpp"

namespace ceil_test {

using namespace numemu;
using namespace numemu::test;

TEST_CASE("ceil is the smallest exponent under which amax does not saturate", "[fast]") {
  for (const char* name : kPowerFormats) {
    const BlockFormat& f = find_block_format(name);
    const std::vector<float> amax = hard_magnitudes(f);
    const std::vector<std::int32_t> s = exponents("ceil", f, amax);
    const oracle::Fraction largest = largest_fraction(f);
    for (std::size_t i = 0; i < amax.size(); ++i) {
      const oracle::Fraction x = oracle::fraction(amax[i]);
      CAPTURE(name, amax[i]);
      if (s[i] < 127) REQUIRE(x <= largest * oracle::power_of_two(s[i]));
      if (s[i] > -127) REQUIRE(x > largest * oracle::power_of_two(s[i] - 1));
    }
  }
}

TEST_CASE("ceil steps exactly above the largest element", "[fast]") {
  CHECK(exponent("ceil", "mxfp4", 6.0f) == 0);
  CHECK(exponent("ceil", "mxfp4", std::nextafter(6.0f, 7.0f)) == 1);
  CHECK(exponent("ceil", "mxfp8_e4m3", 448.0f) == 0);
  CHECK(exponent("ceil", "mxfp8_e4m3", std::nextafter(448.0f, 500.0f)) == 1);
  CHECK(exponent("ceil", "mxint8", 127.0f / 64) == 0);
  CHECK(exponent("ceil", "mxint8", std::nextafter(127.0f / 64, 2.0f)) == 1);
  CHECK(exponent("ceil", "mxfp4", 0.0f) == -127);
  CHECK(exponent("ceil", "mxfp4", 0x1p-149f) == -127);
}

}  // namespace ceil_test
