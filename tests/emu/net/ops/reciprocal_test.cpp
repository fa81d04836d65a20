// reciprocal: values, gradient, special values, threads.
#include "emu/net/ops/reciprocal.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("reciprocal and its gradient", "[fast]") {
  Reciprocal op;
  Tensor x = test::random_tensor({3, 50}, 1);
  for (float& v : x.data) v = 2.5f + 2 * v;
  // Results and gradients are below 4: three roundings of float32.
  constexpr double kTolerance = 4 * 3 * 0x1p-24;
  constexpr double kThird = 96;  // 6 / x^4 at 1/2
  test::check_pointwise(
      op, x, [](double v) { return 1 / v; }, kTolerance, kThird);
}

TEST_CASE("reciprocal of special values", "[fast]") {
  CHECK(test::bits(test::forward_of(Reciprocal(), {kInfinity, -kInfinity, -0.0f, kAnyNan})) ==
        std::vector<std::uint32_t>{0, 0x80000000, 0xff800000, 0x7fc00000});
}

TEST_CASE("reciprocal has the same bits on any number of threads", "[fast]") {
  test::check_threads(Reciprocal(), {test::random_tensor({150, 100}, 2)});
}

TEST_CASE("reciprocal takes one input", "[fast]") {
  const std::vector<Shape> none, two{{2}, {2}};
  CHECK_THROWS_WITH(Reciprocal().output_shape(none),
                    Catch::Contains("reciprocal") && Catch::Contains("one"));
  CHECK_THROWS_WITH(Reciprocal().output_shape(two),
                    Catch::Contains("reciprocal") && Catch::Contains("2"));
}

}  // namespace
}  // namespace numemu::net
