// sigmoid: values, gradient, special values, threads.
#include "emu/net/ops/sigmoid.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("sigmoid and its gradient", "[fast]") {
  Sigmoid op;
  Tensor x = test::random_tensor({3, 50}, 1);
  for (float& v : x.data) v = 0 + 8 * v;
  // Results and gradients are below 1: three roundings of float32.
  constexpr double kTolerance = 1 * 3 * 0x1p-24;
  constexpr double kThird = 0.125;  // at 0
  test::check_pointwise(
      op, x, [](double v) { return 1 / (1 + std::exp(-v)); }, kTolerance, kThird);
}

TEST_CASE("sigmoid of special values", "[fast]") {
  CHECK(test::bits(test::forward_of(Sigmoid(), {kInfinity, -kInfinity, 0, kAnyNan})) ==
        std::vector<std::uint32_t>{0x3f800000, 0, 0x3f000000, 0x7fc00000});
}

TEST_CASE("sigmoid has the same bits on any number of threads", "[fast]") {
  test::check_threads(Sigmoid(), {test::random_tensor({150, 100}, 2)});
}

TEST_CASE("sigmoid takes one input", "[fast]") {
  const std::vector<Shape> none, two{{2}, {2}};
  CHECK_THROWS_WITH(Sigmoid().output_shape(none),
                    Catch::Contains("sigmoid") && Catch::Contains("one"));
  CHECK_THROWS_WITH(Sigmoid().output_shape(two),
                    Catch::Contains("sigmoid") && Catch::Contains("2"));
}

}  // namespace
}  // namespace numemu::net
