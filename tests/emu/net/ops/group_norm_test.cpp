// Normalisation over groups of channels and over images, with gradients.
#include "emu/net/ops/group_norm.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("group_norm and its gradients for every number of groups", "[fast]") {
  const Shape shape{2, 4, 3};
  for (const std::int64_t groups : {1, 2, 4}) {
    const std::int64_t each = 4 / groups * 3;
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      const test::Doubles &x = arguments[0], &weight = arguments[1], &bias = arguments[2];
      test::Doubles y(24);
      for (std::int64_t first = 0; first < 24; first += each) {
        double mean = 0, variance = 0;
        for (std::int64_t i = first; i < first + each; ++i)
          mean += x[i] / static_cast<double>(each);
        for (std::int64_t i = first; i < first + each; ++i)
          variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(each);
        for (std::int64_t i = first; i < first + each; ++i)
          y[i] = (x[i] - mean) / std::sqrt(variance + 0.01) * weight[i / 3 % 4] + bias[i / 3 % 4];
      }
      return y;
    };
    GroupNorm op(4, groups, 0.01);
    // The third derivatives of rows of deviation 0.3 and more stay below 2^10.
    constexpr double kTolerance = 32 * 0x1p-24;
    test::check_op(op, {test::random_tensor(shape, 1)}, reference, kTolerance, {.third = 0x1p10});
  }
}

TEST_CASE("group_norm has the same bits on any number of threads", "[fast]") {
  test::check_threads(GroupNorm(8, 4), {test::random_tensor({10, 8, 200}, 2)});
}

TEST_CASE("group_norm needs its channels in equal groups", "[fast]") {
  const std::vector<Shape> wrong{{2, 3, 4}};
  CHECK_THROWS_WITH(GroupNorm(4, 2).output_shape(wrong), Catch::Contains("[n, 4, ...]"));
  CHECK_THROWS_WITH(GroupNorm(4, 3), Catch::Contains("equal groups"));
}

}  // namespace
}  // namespace numemu::net
