// Normalisation of rows and of groups of channels: values, gradients, special values, threads.
#include "emu/net/ops/row_norm.hpp"

#include <bit>
#include <cmath>
#include <string>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::row_norm_test {
namespace {

using test::kAnyNan;

/// Rows of the last axis; `centred`: with the mean taken off and a bias.
template <class Norm>
void check_rows(const char* name, bool centred) {
  constexpr std::int64_t kRows = 6, kSize = 11;
  constexpr double kEpsilon = 0.03125;
  Norm op(kSize, kEpsilon);
  const auto reference = [&](const std::vector<test::Doubles>& arguments) {
    test::Doubles y;
    for (std::int64_t r = 0; r < kRows; ++r) {
      const double* const x = arguments[0].data() + r * kSize;
      double mean = 0, squares = 0;
      for (std::int64_t i = 0; centred && i < kSize; ++i) mean += x[i] / kSize;
      for (std::int64_t i = 0; i < kSize; ++i) squares += (x[i] - mean) * (x[i] - mean) / kSize;
      for (std::int64_t i = 0; i < kSize; ++i)
        y.push_back((x[i] - mean) / std::sqrt(squares + kEpsilon) * arguments[1][i] +
                    (centred ? arguments[2][i] : 0));
    }
    return y;
  };
  // Results and gradients, of sums of 11 terms, are below 32.
  constexpr double kTolerance = 32 * 0x1p-23;
  constexpr double kThird = 20;  // 11 terms; deviations are 0.5 or so
  test::check_op(op, {test::random_tensor({2, 3, kSize}, 1)}, reference, kTolerance,
                 {.third = kThird});
  test::check_threads(Norm(130), {test::random_tensor({100, 130}, 2)});

  // A constant row, and one with NaN.
  Numerics numerics;
  Tensor x({2, 4}, 3);
  x.data[6] = kAnyNan;
  const std::vector<std::uint32_t> y = test::bits(test::run_op(Norm(4), {x}, numerics).output);
  const float constant = centred ? 0 : static_cast<float>(3 / std::sqrt(9 + 1e-6));
  for (int i = 0; i < 4; ++i) {
    CHECK(y[i] == std::bit_cast<std::uint32_t>(constant));
    CHECK(y[4 + i] == 0x7fc00000);
  }
  const std::vector<Shape> wrong{{2, 5}};
  CHECK_THROWS_WITH(Norm(4).output_shape(wrong),
                    Catch::Contains(std::string(name)) && Catch::Contains("[2, 5]"));
  CHECK_THROWS_AS(Norm(0), Error);
}

TEST_CASE("layer_norm and rms_norm: gradients, threads, special values, refusals", "[fast]") {
  check_rows<LayerNorm>("layer_norm", true);
  check_rows<RmsNorm>("rms_norm", false);
}

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

TEST_CASE("group_norm needs its channels in equal groups", "[fast]") {
  const std::vector<Shape> wrong{{2, 3, 4}};
  CHECK_THROWS_WITH(GroupNorm(4, 2).output_shape(wrong), Catch::Contains("[n, 4, ...]"));
  CHECK_THROWS_WITH(GroupNorm(4, 3), Catch::Contains("equal groups"));
}

}  // namespace

}  // namespace numemu::net::row_norm_test
