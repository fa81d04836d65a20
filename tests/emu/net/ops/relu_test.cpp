// The rectifier: values, special values, gradient.
#include "emu/net/ops/relu.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("relu and its gradient", "[fast]") {
  Relu op;
  Tensor x = test::random_tensor({4, 9}, 1);
  for (float& v : x.data)
    v += v < 0 ? -0.125f : 0.125f;  // away from the kink, by more than the difference step
  const auto reference = [](const std::vector<test::Doubles>& arguments) {
    test::Doubles y = arguments[0];
    for (double& v : y) v = std::max(v, 0.0);
    return y;
  };
  // Central differences divide a float64 rounding by 2 * 2^-12.
  constexpr double kTolerance = 36 * 0x1p-53 * 0x1p12;
  test::check_op(op, {x}, reference, kTolerance);
}

TEST_CASE("relu turns -0 to +0 and keeps NaN, as the neutral one", "[fast]") {
  Relu op;
  Tensor x({5}), y({5});
  x.data = {-0.0f, -1, std::numeric_limits<float>::infinity(),
            -std::numeric_limits<float>::infinity(), std::bit_cast<float>(0xffc12345u)};
  Numerics numerics;
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"relu", numerics}, inputs, y);
  const std::vector<std::uint32_t> expected{0, 0, 0x7f800000, 0, 0x7fc00000};
  for (std::size_t i = 0; i < 5; ++i) CHECK(std::bit_cast<std::uint32_t>(y.data[i]) == expected[i]);
}

}  // namespace
}  // namespace numemu::net
