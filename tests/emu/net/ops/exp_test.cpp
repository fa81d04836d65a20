// exponential: values, gradient, special values, threads.
#include "emu/net/ops/exp.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("exponential and its gradient", "[fast]") {
  Exp op;
  Tensor x = test::random_tensor({3, 50}, 1);
  for (float& v : x.data) v = -1 + 3 * v;
  // Results and gradients are below 7.4: three roundings of float32.
  constexpr double kTolerance = 7.4 * 3 * 0x1p-24;
  constexpr double kThird = 7.4;  // e^2
  test::check_pointwise(
      op, x, [](double v) { return std::exp(v); }, kTolerance, kThird);
}

TEST_CASE("exponential of special values", "[fast]") {
  CHECK(test::bits(test::forward_of(Exp(), {kInfinity, -kInfinity, 0, kAnyNan})) ==
        std::vector<std::uint32_t>{0x7f800000, 0, 0x3f800000, 0x7fc00000});
}

TEST_CASE("exponential has the same bits on any number of threads", "[fast]") {
  test::check_threads(Exp(), {test::random_tensor({150, 100}, 2)});
}

TEST_CASE("exponential takes one input", "[fast]") {
  const std::vector<Shape> none, two{{2}, {2}};
  CHECK_THROWS_WITH(Exp().output_shape(none), Catch::Contains("exp") && Catch::Contains("one"));
  CHECK_THROWS_WITH(Exp().output_shape(two), Catch::Contains("exp") && Catch::Contains("2"));
}

}  // namespace
}  // namespace numemu::net
