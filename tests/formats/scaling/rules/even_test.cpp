// Scale rule even: amax is first rounded to the element's mantissa width.
#include "tests/catch.hpp"
#include "tests/formats/scaling/rules/exponents.hpp"

namespace even_test {

using namespace numemu;
using namespace numemu::test;

TEST_CASE("even is floor of the rounded amax", "[fast]") {
  for (const char* name : kPowerFormats) {
    const BlockFormat& f = find_block_format(name);
    const std::vector<float> amax = hard_magnitudes(f);
    const std::vector<std::int32_t> s = exponents("even", f, amax);
    const oracle::Fraction largest = largest_fraction(f);
    const int emax = floor_log2(largest, 0);
    // Significant bits of the largest magnitudes: those of the largest integer or 1 + M.
    const int width =
        f.element->kind == Kind::integer ? f.element->bits - 2 : f.element->mantissa_bits;
    for (std::size_t i = 0; i < amax.size(); ++i) {
      const oracle::Fraction x = oracle::fraction(amax[i]);
      const int e = floor_log2(x, std::ilogb(amax[i]));
      // Rounds up to the next power of two from the midpoint of its lower neighbour on; the tie
      // goes there too, because that neighbour's last bit is odd (with no bits: 1.5 ties to 2).
      const oracle::Fraction midpoint =
          oracle::power_of_two(e + 1) - oracle::power_of_two(e - width - 1);
      CAPTURE(name, amax[i]);
      REQUIRE(s[i] == clamped((x >= midpoint ? e + 1 : e) - emax));
    }
  }
}

TEST_CASE("even steps at the midpoint below a power of two", "[fast]") {
  CHECK(exponent("even", "mxfp4", 7.0f) == 1);
  CHECK(exponent("even", "mxfp4", std::nextafter(7.0f, 0.0f)) == 0);
  CHECK(exponent("even", "mxfp8_e4m3", 496.0f) == 1);
  CHECK(exponent("even", "mxfp8_e4m3", std::nextafter(496.0f, 0.0f)) == 0);
  CHECK(exponent("even", "mxint8", 127.5f / 64) == 1);
  CHECK(exponent("even", "mxint8", std::nextafter(127.5f / 64, 0.0f)) == 0);
  CHECK(exponent("even", "mxfp4", 0.0f) == -127);
}

}  // namespace even_test
