// Running sums along any axis, in every direction, and their gradients.
#include "emu/net/ops/cumulative_sum.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("cumulative sums along any axis", "[fast]") {
  const Shape shape{2, 3, 4};
  const std::int64_t strides[] = {12, 4, 1};
  for (const std::int64_t axis : {0, 1, 2, -1}) {
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        const std::int64_t at = axis < 0 ? axis + 3 : axis;
        const auto reference = [&](const std::vector<test::Doubles>& arguments) {
          test::Doubles y(24, 0);
          for (std::int64_t i = 0; i < 24; ++i) {
            const std::int64_t own = i / strides[at] % shape[at];
            for (std::int64_t k = 0; k < shape[at]; ++k) {
              const bool counts = (reverse ? k >= own : k <= own) && !(exclusive && k == own);
              if (counts) y[i] += arguments[0][i + (k - own) * strides[at]];
            }
          }
          return y;
        };
        CumulativeSum op({.axis = axis, .exclusive = exclusive, .reverse = reverse});
        constexpr double kTolerance = 4 * 0x1p-24;  // one rounding of sums below 4
        test::check_op(op, {test::random_tensor(shape, 1)}, reference, kTolerance);
      }
    }
  }
}

TEST_CASE("cumulative sums have the same bits on any number of threads", "[fast]") {
  for (const std::int64_t axis : {0, 1})
    test::check_threads(CumulativeSum({.axis = axis}), {test::random_tensor({200, 100}, 2)});
}

TEST_CASE("cumulative sums need the axis", "[fast]") {
  const std::vector<Shape> shapes{{2, 3}};
  CHECK_THROWS_WITH(CumulativeSum({.axis = 2}).output_shape(shapes), Catch::Contains("axis 2"));
}

}  // namespace
}  // namespace numemu::net
