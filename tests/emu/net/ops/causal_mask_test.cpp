// The causal mask: entries above the diagonal, gradients, shapes.
#include "emu/net/ops/causal_mask.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

using test::kAnyNan;
using test::kInfinity;

TEST_CASE("the causal mask replaces what is above the diagonal", "[fast]") {
  Numerics numerics;
  const Tensor x = test::random_tensor({2, 3, 4, 4}, 1);
  const test::OpResult result = test::run_op(CausalMask(), {x}, numerics);
  for (int i = 0; i < 96; ++i) {
    const bool seen = i % 4 <= i / 4 % 4;
    CHECK(result.output.data[i] == (seen ? x.data[i] : -kInfinity));
    CHECK(result.grad_inputs[0].data[i] == (seen ? result.grad_output.data[i] : 0));
  }
  test::check_threads(CausalMask(), {test::random_tensor({4, 70, 70}, 1)});
}

TEST_CASE("the causal mask keeps one NaN and refuses other shapes", "[fast]") {
  Numerics numerics;
  Tensor x({1, 1}, kAnyNan);
  CHECK(test::bits(test::run_op(CausalMask(), {x}, numerics).output) ==
        std::vector<std::uint32_t>{0x7fc00000});
  const std::vector<Shape> wrong{{2, 3, 4}}, vector{{4}};
  CHECK_THROWS_WITH(CausalMask().output_shape(wrong), Catch::Contains("[2, 3, 4]"));
  CHECK_THROWS_WITH(CausalMask().output_shape(vector), Catch::Contains("[..., T, T]"));
}

}  // namespace
}  // namespace numemu::net
