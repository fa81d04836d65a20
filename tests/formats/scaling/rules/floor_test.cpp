// Scale rule floor: against fractions, and the trap of a rounded log2.
#include "tests/catch.hpp"
#include "tests/formats/scaling/rules/exponents.hpp"

namespace floor_test {

using namespace numemu;
using namespace numemu::test;

TEST_CASE("floor is the exponent of amax less that of the largest element", "[fast]") {
  for (const char* name : kPowerFormats) {
    const BlockFormat& f = find_block_format(name);
    const std::vector<float> amax = hard_magnitudes(f);
    const std::vector<std::int32_t> s = exponents("floor", f, amax);
    const int emax = floor_log2(largest_fraction(f), 0);
    for (std::size_t i = 0; i < amax.size(); ++i) {
      CAPTURE(name, amax[i]);
      REQUIRE(s[i] == clamped(floor_log2(oracle::fraction(amax[i]), std::ilogb(amax[i])) - emax));
    }
  }
}

TEST_CASE("floor of amax just below a power of two stays in its binade", "[fast]") {
  // log2 in float32 rounds up here, which makes a well-known library one too high.
  CHECK(exponent("floor", "mxfp4", std::nextafter(8.0f, 0.0f)) == 0);
  CHECK(exponent("floor", "mxfp4", 8.0f) == 1);
  CHECK(exponent("floor", "mxfp8_e4m3", std::nextafter(0x1p100f, 0.0f)) == 99 - 8);
  CHECK(exponent("floor", "mxint8", std::nextafter(2.0f, 0.0f)) == 0);
  CHECK(exponent("floor", "bfp(4,16)", 7.9f) == 0);
}

TEST_CASE("floor is clamped to what e8m0 stores", "[fast]") {
  CHECK(exponent("floor", "mxfp4", 0.0f) == -127);
  CHECK(exponent("floor", "mxfp4", 0x1p-149f) == -127);
  CHECK(exponent("floor", "mxint8", 0x1p-127f) == -127);
  CHECK(exponent("floor", "mxint8", 0x1p-126f) == -126);
  CHECK(exponent("floor", "mxint8", 3.4e38f) == 127);
  CHECK(exponent("floor", "mx(e2m1b3+finite,32)", 3.4e38f) == 127);
}

}  // namespace floor_test
