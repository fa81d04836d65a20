// Clip: values, gradient, special values, infinite bounds.
#include "emu/net/ops/clip.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("clip and its gradient", "[fast]") {
  Clip op(-0.5f, 0.25f);
  Tensor x = test::random_tensor({8, 9}, 1);
  for (float& v : x.data) {  // away from the kinks
    if (std::fabs(v + 0.5f) < 0x1p-10f || std::fabs(v - 0.25f) < 0x1p-10f) v = 0;
  }
  constexpr double kTolerance = 72 * 0x1p-53 * 0x1p12;  // float64 roundings over the step
  test::check_pointwise(
      op, x, [](double v) { return std::fmin(std::fmax(v, -0.5), 0.25); }, kTolerance, 0);
}

TEST_CASE("clip of special values and with bounds that do not bind", "[fast]") {
  CHECK(test::bits(test::forward_of(Clip(0, 6), {-kInfinity, kInfinity, 6, kAnyNan})) ==
        std::vector<std::uint32_t>{0, 0x40c00000, 0x40c00000, 0x7fc00000});
  CHECK(test::forward_of(Clip(-kInfinity, 6), {-1e30f, 7}).data == std::vector<float>{-1e30f, 6});
  CHECK(test::forward_of(Clip(0, kInfinity), {-1e30f, 1e30f}).data == std::vector<float>{0, 1e30f});
}

TEST_CASE("the gradient of clip stops at the bounds and lets NaN through", "[fast]") {
  Tensor x({5});
  x.data = {0, 6, 3, kAnyNan, -1};
  Numerics numerics;
  const test::OpResult result = test::run_op(Clip(0, 6), {x}, numerics);
  const std::vector<float>& g = result.grad_output.data;
  CHECK(result.grad_inputs[0].data == std::vector<float>{0, 0, g[2], g[3], 0});
}

TEST_CASE("clip refuses bounds in the wrong order", "[fast]") {
  CHECK_THROWS_WITH(Clip(1, 0), Catch::Contains("low <= high"));
  CHECK_THROWS_WITH(Clip(kAnyNan, 0), Catch::Contains("low <= high"));
}

}  // namespace
}  // namespace numemu::net
