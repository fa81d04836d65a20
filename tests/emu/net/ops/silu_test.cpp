// silu: values, gradient, special values, threads.
#include "emu/net/ops/silu.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("silu and its gradient", "[fast]") {
  Silu op;
  Tensor x = test::random_tensor({3, 50}, 1);
  for (float& v : x.data) v = 0 + 8 * v;
  // Results and gradients are below 8: three roundings of float32.
  constexpr double kTolerance = 8 * 3 * 0x1p-24;
  constexpr double kThird = 1;  // numerically 0.8 at most
  test::check_pointwise(
      op, x, [](double v) { return v / (1 + std::exp(-v)); }, kTolerance, kThird);
}

TEST_CASE("silu of special values", "[fast]") {
  CHECK(test::bits(test::forward_of(Silu(), {kInfinity, -kInfinity, -0.0f, kAnyNan})) ==
        std::vector<std::uint32_t>{0x7f800000, 0x80000000, 0x80000000, 0x7fc00000});
}

TEST_CASE("silu has the same bits on any number of threads", "[fast]") {
  test::check_threads(Silu(), {test::random_tensor({150, 100}, 2)});
}

TEST_CASE("silu takes one input", "[fast]") {
  const std::vector<Shape> none, two{{2}, {2}};
  CHECK_THROWS_WITH(Silu().output_shape(none), Catch::Contains("silu") && Catch::Contains("one"));
  CHECK_THROWS_WITH(Silu().output_shape(two), Catch::Contains("silu") && Catch::Contains("2"));
}

TEST_CASE("silu has the derivative 1 and 0 at the infinities", "[fast]") {
  Tensor x({2});
  x.data = {kInfinity, -kInfinity};
  Numerics numerics;
  const test::OpResult result = test::run_op(Silu(), {x}, numerics);
  CHECK(result.grad_inputs[0].data[0] == result.grad_output.data[0]);
  CHECK(result.grad_inputs[0].data[1] == 0);
}

}  // namespace
}  // namespace numemu::net
