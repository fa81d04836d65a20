// logarithm: values, gradient, special values, threads.
#include "emu/net/ops/log.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("logarithm and its gradient", "[fast]") {
  Log op;
  Tensor x = test::random_tensor({3, 50}, 1);
  for (float& v : x.data) v = 2.5f + 2 * v;
  // Results and gradients are below 2: three roundings of float32.
  constexpr double kTolerance = 2 * 3 * 0x1p-24;
  constexpr double kThird = 16;  // 2 / x^3 at 1/2
  test::check_pointwise(
      op, x, [](double v) { return std::log(v); }, kTolerance, kThird);
}

TEST_CASE("logarithm of special values", "[fast]") {
  CHECK(test::bits(test::forward_of(Log(), {kInfinity, -kInfinity, 0, 1, kAnyNan})) ==
        std::vector<std::uint32_t>{0x7f800000, 0x7fc00000, 0xff800000, 0, 0x7fc00000});
}

TEST_CASE("logarithm has the same bits on any number of threads", "[fast]") {
  test::check_threads(Log(), {test::random_tensor({150, 100}, 2)});
}

TEST_CASE("logarithm takes one input", "[fast]") {
  const std::vector<Shape> none, two{{2}, {2}};
  CHECK_THROWS_WITH(Log().output_shape(none), Catch::Contains("log") && Catch::Contains("one"));
  CHECK_THROWS_WITH(Log().output_shape(two), Catch::Contains("log") && Catch::Contains("2"));
}

}  // namespace
}  // namespace numemu::net
