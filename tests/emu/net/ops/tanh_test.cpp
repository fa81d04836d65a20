// tanh: values, gradient, special values, threads.
#include "emu/net/ops/tanh.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("tanh and its gradient", "[fast]") {
  Tanh op;
  Tensor x = test::random_tensor({3, 50}, 1);
  for (float& v : x.data) v = 0 + 4 * v;
  // Results and gradients are below 1: three roundings of float32.
  constexpr double kTolerance = 1 * 3 * 0x1p-24;
  constexpr double kThird = 2;  // at 0
  test::check_pointwise(
      op, x, [](double v) { return std::tanh(v); }, kTolerance, kThird);
}

TEST_CASE("tanh of special values", "[fast]") {
  CHECK(test::bits(test::forward_of(Tanh(), {kInfinity, -kInfinity, -0.0f, kAnyNan})) ==
        std::vector<std::uint32_t>{0x3f800000, 0xbf800000, 0x80000000, 0x7fc00000});
}

TEST_CASE("tanh has the same bits on any number of threads", "[fast]") {
  test::check_threads(Tanh(), {test::random_tensor({150, 100}, 2)});
}

TEST_CASE("tanh takes one input", "[fast]") {
  const std::vector<Shape> none, two{{2}, {2}};
  CHECK_THROWS_WITH(Tanh().output_shape(none), Catch::Contains("tanh") && Catch::Contains("one"));
  CHECK_THROWS_WITH(Tanh().output_shape(two), Catch::Contains("tanh") && Catch::Contains("2"));
}

}  // namespace
}  // namespace numemu::net
