// Scale rule pow2: each way to round to a power of two, at its boundary and at the ends of a scale
// format.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/formats/scaling/rules/exponents.hpp"

namespace pow2_test {

using namespace numemu;
using numemu::test::exponents;

namespace {

/// Of one element x, whose absmax scale in int2 is x itself.
float scale_of(const char* rule, float x) {
  Conversion c;
  c.format = &find_format("int2");
  return find_scale_rule(rule).scale({&x, 1, &c});
}

}  // namespace

TEST_CASE("pow2 rounds to the nearest in log2, upward or downward", "[fast]") {
  const float below = std::sqrt(2.0f), above = std::nextafter(below, 2.0f);
  REQUIRE(double{below} * below < 2);
  REQUIRE(double{above} * above > 2);
  CHECK(scale_of("pow2(absmax)", below) == 1);
  CHECK(scale_of("pow2(absmax)", above) == 2);
  CHECK(scale_of("pow2(absmax,up)", std::nextafter(1.0f, 2.0f)) == 2);
  CHECK(scale_of("pow2(absmax,up)", 1) == 1);
  CHECK(scale_of("pow2(absmax,down)", std::nextafter(2.0f, 1.0f)) == 1);
  CHECK(scale_of("pow2(absmax)", 0x1.8p127f) == 0x1p127f);
  CHECK(scale_of("pow2(absmax)", 0x1p-149f) == 0x1p-149f);
  CHECK(scale_of("pow2(absmax)", 0) == 1);
  CHECK(find_scale_rule("pow2(absmax,nearest)").name == "pow2(absmax)");
  CHECK(&find_scale_rule("pow2( absmax , nearest )") == &find_scale_rule("pow2(absmax)"));
}

TEST_CASE("pow2 stores a power of two of the scale format", "[fast]") {
  const BlockFormat& f = find_block_format("group(int2,32,float8_e4m3fn)");
  Conversion c;
  c.format = f.element;
  for (const auto& [x, expected] : {std::pair{440.0f, 256.0f},
                                    {300.0f, 256.0f},
                                    {1e9f, 256.0f},
                                    {0.75f, 1.0f},
                                    {0.0019f, 0x1p-9f}}) {
    CAPTURE(x);
    CHECK(find_scale_rule("pow2(absmax)", f).scale({&x, 1, &c, &f}) == expected);
  }
}

TEST_CASE("pow2 leaves powers of two as they are", "[fast]") {
  const BlockFormat& f = find_block_format("mxfp4");
  const std::vector<float> amax = {0, 0.3f, 1, 5.9f};
  CHECK(exponents("pow2(ceil)", f, amax) == exponents("ceil", f, amax));
}

}  // namespace pow2_test
