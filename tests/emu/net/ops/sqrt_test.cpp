// square root: values, gradient, special values, threads.
#include "emu/net/ops/sqrt.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("square root and its gradient", "[fast]") {
  Sqrt op;
  Tensor x = test::random_tensor({3, 50}, 1);
  for (float& v : x.data) v = 2.5f + 2 * v;
  // Results and gradients are below 2.2: three roundings of float32.
  constexpr double kTolerance = 2.2 * 3 * 0x1p-24;
  constexpr double kThird = 2.2;  // 3 / 8 x^(-5/2) at 1/2
  test::check_pointwise(
      op, x, [](double v) { return std::sqrt(v); }, kTolerance, kThird);
}

TEST_CASE("square root of special values", "[fast]") {
  CHECK(test::bits(test::forward_of(Sqrt(), {kInfinity, -1, -0.0f, 4, kAnyNan})) ==
        std::vector<std::uint32_t>{0x7f800000, 0x7fc00000, 0x80000000, 0x40000000, 0x7fc00000});
}

TEST_CASE("square root has the same bits on any number of threads", "[fast]") {
  test::check_threads(Sqrt(), {test::random_tensor({150, 100}, 2)});
}

TEST_CASE("square root takes one input", "[fast]") {
  const std::vector<Shape> none, two{{2}, {2}};
  CHECK_THROWS_WITH(Sqrt().output_shape(none), Catch::Contains("sqrt") && Catch::Contains("one"));
  CHECK_THROWS_WITH(Sqrt().output_shape(two), Catch::Contains("sqrt") && Catch::Contains("2"));
}

}  // namespace
}  // namespace numemu::net
