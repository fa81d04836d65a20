// Scale rule nearest: the logarithm rounded, decided by squares.
#include "tests/catch.hpp"
#include "tests/formats/scaling/rules/exponents.hpp"

namespace nearest_test {

using namespace numemu;
using namespace numemu::test;

TEST_CASE("nearest has 2^(s - 1/2) < amax / largest < 2^(s + 1/2)", "[fast]") {
  for (const char* name : kPowerFormats) {
    const BlockFormat& f = find_block_format(name);
    const std::vector<float> amax = hard_magnitudes(f);
    const std::vector<std::int32_t> s = exponents("nearest", f, amax);
    const oracle::Fraction largest = largest_fraction(f);
    for (std::size_t i = 0; i < amax.size(); ++i) {
      const oracle::Fraction ratio = oracle::fraction(amax[i]) / largest;
      const oracle::Fraction square = ratio * ratio;
      CAPTURE(name, amax[i]);
      if (s[i] < 127) REQUIRE(square < oracle::power_of_two(2 * s[i] + 1));
      if (s[i] > -127) REQUIRE(square > oracle::power_of_two(2 * s[i] - 1));
    }
  }
}

TEST_CASE("nearest steps between the floats around a half-integer logarithm", "[fast]") {
  // 6 sqrt(2) = 8.48528137...
  const float below = 8.485281f, above = std::nextafter(below, 9.0f);
  CHECK(oracle::fraction(below) * oracle::fraction(below) < 72);
  CHECK(oracle::fraction(above) * oracle::fraction(above) > 72);
  CHECK(exponent("nearest", "mxfp4", below) == 0);
  CHECK(exponent("nearest", "mxfp4", above) == 1);
  CHECK(exponent("nearest", "mxfp4", below / 2) == -1);
  CHECK(exponent("nearest", "mxfp4", above / 2) == 0);
  CHECK(exponent("nearest", "mxfp4", 0.0f) == -127);
}

}  // namespace nearest_test
