// LayerNorm: values, gradients, special values, threads.
#include "emu/net/ops/layer_norm.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

using test::kAnyNan;

TEST_CASE("layer_norm and its gradients", "[fast]") {
  constexpr std::int64_t kRows = 6, kSize = 11;
  constexpr double kEpsilon = 0.03125;
  LayerNorm op(kSize, kEpsilon);
  const auto reference = [&](const std::vector<test::Doubles>& arguments) {
    test::Doubles y;
    for (std::int64_t r = 0; r < kRows; ++r) {
      const double* const x = arguments[0].data() + r * kSize;
      double mean = 0, squares = 0;
      for (std::int64_t i = 0; i < kSize; ++i) mean += x[i] / kSize;
      for (std::int64_t i = 0; i < kSize; ++i) squares += (x[i] - mean) * (x[i] - mean) / kSize;
      for (std::int64_t i = 0; i < kSize; ++i)
        y.push_back((x[i] - mean) / std::sqrt(squares + kEpsilon) * arguments[1][i] +
                    arguments[2][i]);
    }
    return y;
  };
  // Results and gradients, of sums of 11 terms, are below 32.
  constexpr double kTolerance = 32 * 0x1p-23;
  constexpr double kThird = 20;  // 11 terms; deviations are 0.5 or so
  test::check_op(op, {test::random_tensor({2, 3, kSize}, 1)}, reference, kTolerance,
                 {.third = kThird});
}

TEST_CASE("layer_norm has the same bits on any number of threads", "[fast]") {
  test::check_threads(LayerNorm(130), {test::random_tensor({100, 130}, 2)});
}

TEST_CASE("layer_norm of a constant row and of NaN and of other shapes", "[fast]") {
  Numerics numerics;
  Tensor x({2, 4}, 3);
  x.data[6] = kAnyNan;
  const std::vector<std::uint32_t> y = test::bits(test::run_op(LayerNorm(4), {x}, numerics).output);
  for (int i = 0; i < 4; ++i) {
    CHECK(y[i] == 0);
    CHECK(y[4 + i] == 0x7fc00000);
  }
  const std::vector<Shape> wrong{{2, 5}};
  CHECK_THROWS_WITH(LayerNorm(4).output_shape(wrong),
                    Catch::Contains("layer_norm") && Catch::Contains("[2, 5]"));
  CHECK_THROWS_AS(LayerNorm(0), Error);
}

}  // namespace
}  // namespace numemu::net
