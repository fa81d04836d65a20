// negation: values, gradient, special values, threads.
#include "emu/net/ops/negate.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("negation and its gradient", "[fast]") {
  Negate op;
  Tensor x = test::random_tensor({3, 50}, 1);
  for (float& v : x.data) v = 0 + 4 * v;
  // Results and gradients are below 4: three roundings of float32.
  constexpr double kTolerance = 4 * 3 * 0x1p-24;
  constexpr double kThird = 0;  // linear
  test::check_pointwise(
      op, x, [](double v) { return -v; }, kTolerance, kThird);
}

TEST_CASE("negation of special values", "[fast]") {
  CHECK(test::bits(test::forward_of(Negate(), {kInfinity, 0, kAnyNan})) ==
        std::vector<std::uint32_t>{0xff800000, 0x80000000, 0x7fc00000});
}

TEST_CASE("negation has the same bits on any number of threads", "[fast]") {
  test::check_threads(Negate(), {test::random_tensor({150, 100}, 2)});
}

TEST_CASE("negation takes one input", "[fast]") {
  const std::vector<Shape> none, two{{2}, {2}};
  CHECK_THROWS_WITH(Negate().output_shape(none),
                    Catch::Contains("negate") && Catch::Contains("one"));
  CHECK_THROWS_WITH(Negate().output_shape(two), Catch::Contains("negate") && Catch::Contains("2"));
}

}  // namespace
}  // namespace numemu::net
