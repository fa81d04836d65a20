// Scale rule detuned: a factor on real scales, whole binades on powers of two, refusals by name.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/formats/scaling/rules/exponents.hpp"

namespace detuned_test {

using namespace numemu;
using numemu::test::exponents;

TEST_CASE("detuned multiplies a real scale and rounds once", "[fast]") {
  Conversion c;
  c.format = &find_format("int4");
  const float x[5] = {0.3f, -1.7f, 0, NAN, 0.01f};
  const float zeros[2] = {0, -0.0f};
  const float plain = find_scale_rule("absmax").scale({x, 5, &c});
  CHECK(find_scale_rule("detuned(absmax,1)").scale({x, 5, &c}) == plain);
  CHECK(find_scale_rule("detuned(absmax,0.7)").scale({x, 5, &c}) ==
        static_cast<float>(double{plain} * 0.7));
  CHECK(find_scale_rule("detuned(absmax,3)").scale({zeros, 2, &c}) == 1);
  CHECK(find_scale_rule("detuned(none,4)").scale({x, 5, &c}) == 4);
  CHECK_FALSE(find_scale_rule("detuned(none,4)").stores_scale);
  CHECK(find_scale_rule("detuned(absmax,4)").fills_range);
}

TEST_CASE("detuned stays in the scale format of blocks", "[fast]") {
  const BlockFormat& f = find_block_format("group(int4,32,float8_e4m3fn)");
  Conversion c;
  c.format = f.element;
  const float x[3] = {1, 2, 7};
  const ScaleRequest request{x, 3, &c, &f};
  CHECK(find_scale_rule("absmax", f).scale(request) == 1);
  CHECK(find_scale_rule("detuned(absmax,1.06)", f).scale(request) == 1.125f);  // rounded upward
  CHECK(find_scale_rule("detuned(absmax,1000)", f).scale(request) == 448);
  CHECK(serves(find_scale_rule("detuned(absmax,2)"), find_block_format("nvfp4")));
}

TEST_CASE("a history is outside other rules", "[fast]") {
  CHECK_THROWS_WITH(
      find_scale_rule("detuned(delayed(4),1.5)"),
      Catch::Contains("scale rule 'delayed(4)': expected delayed outside other rules"));
}

TEST_CASE("detuned shifts powers of two by whole binades", "[fast]") {
  const BlockFormat& f = find_block_format("mxfp4");
  const std::vector<float> amax = {0, 0x1p-120f, 1, 5.9f, 0x1p127f};
  const auto plain = exponents("floor", f, amax);
  auto moved = plain;
  for (std::size_t b = 1; b < amax.size(); ++b) moved[b] = std::max(plain[b] - 2, -127);
  CHECK(exponents("detuned(floor,0.25)", f, amax) == moved);
  CHECK_THROWS_WITH(
      find_scale_rule("detuned(floor,1.5)", find_block_format("mxfp4")),
      Catch::Contains("detuned(floor,1.5)") && Catch::Contains("expected a power of two"));
}

}  // namespace detuned_test
