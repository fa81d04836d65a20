// The absolute value: values, gradient, special values.
#include "emu/net/ops/abs.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("absolute value and its gradient", "[fast]") {
  Abs op;
  Tensor x = test::random_tensor({4, 9}, 1);
  for (float& v : x.data) v += v < 0 ? -0.125f : 0.125f;  // away from the kink
  constexpr double kTolerance = 36 * 0x1p-53 * 0x1p12;    // float64 roundings over the step
  test::check_pointwise(
      op, x, [](double v) { return std::fabs(v); }, kTolerance, 0);
}

TEST_CASE("absolute value of special values", "[fast]") {
  CHECK(test::bits(test::forward_of(Abs(), {-kInfinity, -0.0f, kAnyNan})) ==
        std::vector<std::uint32_t>{0x7f800000, 0, 0x7fc00000});
  Numerics numerics;
  CHECK(test::run_op(Abs(), {Tensor({3})}, numerics).grad_inputs[0].data ==
        std::vector<float>{0, 0, 0});
}

}  // namespace
}  // namespace numemu::net
