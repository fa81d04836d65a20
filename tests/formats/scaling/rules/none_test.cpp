// Scale rule none: one, for plain real scales only.
#include "tests/catch.hpp"
#include "tests/formats/scaling/rules/exponents.hpp"

namespace none_test {

using namespace numemu;

TEST_CASE("none leaves values as they are", "[fast]") {
  const BlockFormat& f = find_block_format("group(bfloat16,row,float32)");
  const float x[2] = {3, 1e30f};
  Conversion conversion;
  conversion.format = f.element;
  CHECK(find_scale_rule("none", f).scale({x, 2, &conversion, &f}) == 1);
  CHECK_FALSE(serves(find_scale_rule("none"), find_block_format("nvfp4")));
  CHECK_FALSE(serves(find_scale_rule("none"), find_block_format("mxfp4")));
}

}  // namespace none_test
