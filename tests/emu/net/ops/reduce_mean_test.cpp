// Means over axes: values, gradients, shapes, threads.
#include "emu/net/ops/reduce_mean.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("reduce_mean and its gradient over any axes", "[fast]") {
  const Shape shape{2, 3, 4};
  const std::int64_t strides[] = {12, 4, 1};
  const std::vector<std::vector<std::int64_t>> cases{{0},    {1},    {2},    {-1},
                                                     {0, 1}, {1, 2}, {2, 0}, {}};
  for (const std::vector<std::int64_t>& axes : cases) {
    for (const bool keep : {true, false}) {
      bool reduced[3] = {axes.empty(), axes.empty(), axes.empty()};
      for (const std::int64_t axis : axes) reduced[axis < 0 ? axis + 3 : axis] = true;
      Shape expected;
      std::int64_t count = 1;
      for (int a = 0; a < 3; ++a) {
        if (!reduced[a]) expected.push_back(shape[a]);
        if (reduced[a] && keep) expected.push_back(1);
        if (reduced[a]) count *= shape[a];
      }
      const auto reference = [&](const std::vector<test::Doubles>& arguments) {
        test::Doubles y(24 / count);
        for (std::int64_t i = 0; i < 24; ++i) {
          std::int64_t place = 0;
          for (int a = 0; a < 3; ++a)
            if (!reduced[a]) place = place * shape[a] + i / strides[a] % shape[a];
          y[place] += arguments[0][i] / static_cast<double>(count);
        }
        return y;
      };
      ReduceMean op(axes, keep);
      const std::vector<Shape> shapes{shape};
      CHECK(op.output_shape(shapes) == expected);
      constexpr double kTolerance = 2 * 0x1p-24;  // two roundings of numbers below 1
      test::check_op(op, {test::random_tensor(shape, 1)}, reference, kTolerance);
    }
  }
}

TEST_CASE("reduce_mean has the same bits on any number of threads", "[fast]") {
  const Tensor x = test::random_tensor({20, 30, 40}, 2);
  for (const std::int64_t axis : {0, 1, 2}) test::check_threads(ReduceMean({axis}), {x});
}

TEST_CASE("reduce_mean keeps one NaN and refuses wrong axes", "[fast]") {
  Tensor x({2, 2});
  x.data = {kAnyNan, 1, kInfinity, -kInfinity};
  Numerics numerics;
  CHECK(test::bits(test::run_op(ReduceMean({1}, false), {x}, numerics).output) ==
        std::vector<std::uint32_t>{0x7fc00000, 0x7fc00000});
  const std::vector<Shape> two{{2, 3}}, empty{{2, 0}};
  CHECK_THROWS_WITH(ReduceMean({2}).output_shape(two), Catch::Contains("axis 2"));
  CHECK_THROWS_WITH(ReduceMean({1, -1}).output_shape(two), Catch::Contains("axis -1"));
  CHECK_THROWS_WITH(ReduceMean({1}).output_shape(empty), Catch::Contains("[2, 0]"));
}

}  // namespace
}  // namespace numemu::net
