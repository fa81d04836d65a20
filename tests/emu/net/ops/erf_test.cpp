// erf: values, gradient, special values, threads.
#include "emu/net/ops/erf.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("erf and its gradient", "[fast]") {
  Erf op;
  Tensor x = test::random_tensor({3, 50}, 1);
  for (float& v : x.data) v = 0 + 4 * v;
  // Results and gradients are below 1.13: three roundings of float32.
  constexpr double kTolerance = 1.13 * 3 * 0x1p-24;
  constexpr double kThird = 2.26;  // 4 / sqrt(pi) at 0
  test::check_pointwise(
      op, x, [](double v) { return std::erf(v); }, kTolerance, kThird);
}

TEST_CASE("erf of special values", "[fast]") {
  CHECK(test::bits(test::forward_of(Erf(), {kInfinity, -kInfinity, -0.0f, kAnyNan})) ==
        std::vector<std::uint32_t>{0x3f800000, 0xbf800000, 0x80000000, 0x7fc00000});
}

TEST_CASE("erf has the same bits on any number of threads", "[fast]") {
  test::check_threads(Erf(), {test::random_tensor({150, 100}, 2)});
}

TEST_CASE("erf takes one input", "[fast]") {
  const std::vector<Shape> none, two{{2}, {2}};
  CHECK_THROWS_WITH(Erf().output_shape(none), Catch::Contains("erf") && Catch::Contains("one"));
  CHECK_THROWS_WITH(Erf().output_shape(two), Catch::Contains("erf") && Catch::Contains("2"));
}

}  // namespace
}  // namespace numemu::net
