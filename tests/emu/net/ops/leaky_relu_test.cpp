// The leaky rectifier: values, gradient, special values.
#include "emu/net/ops/leaky_relu.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("leaky relu and its gradient", "[fast]") {
  LeakyRelu op(0.25f);
  Tensor x = test::random_tensor({4, 9}, 1);
  for (float& v : x.data) v += v < 0 ? -0.125f : 0.125f;  // away from the kink
  constexpr double kTolerance = 36 * 0x1p-53 * 0x1p12;    // float64 roundings over the step
  test::check_pointwise(
      op, x, [](double v) { return v > 0 ? v : 0.25 * v; }, kTolerance, 0);
}

TEST_CASE("leaky relu of special values", "[fast]") {
  CHECK(test::bits(test::forward_of(LeakyRelu(0.5f), {-kInfinity, kInfinity, -0.0f, kAnyNan})) ==
        std::vector<std::uint32_t>{0xff800000, 0x7f800000, 0x80000000, 0x7fc00000});
  CHECK_THROWS_WITH(LeakyRelu(kInfinity), Catch::Contains("finite"));
}

}  // namespace
}  // namespace numemu::net
