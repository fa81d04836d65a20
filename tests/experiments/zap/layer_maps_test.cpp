// Estimates on a layer's maps: ratios with errors, the bound, random predictors.
#include <cmath>
#include <limits>

#include "experiments/zap/thresholds.hpp"
#include "tests/catch.hpp"
#include "tests/policies/zap/correlated_maps.hpp"

using namespace numemu;
using namespace numemu::experiments;

TEST_CASE("a ratio of sums and its error by images", "[fast]") {
  const RatioEstimate ratio = ratio_of({1, 2, 3}, {10, 10, 20});
  CHECK(ratio.value == 0.15);
  CHECK(ratio.error == Approx(std::sqrt(0.25 + 0.25 + 0) / 40));
  CHECK(ratio_of({0, 0}, {0, 0}).value == 0);
  CHECK(ratio_of({1, 2}, {2, 4}).error == 0);  // images that agree
}

TEST_CASE("estimates on maps agree with the tally", "[fast]") {
  const policies::ZapPredictor predictor("relu", {9, 9, 3}, 6, 2);
  const net::Tensor x = numemu::testing::correlated_maps(150, 9, 9, 3, 5);
  const PredictedMaps maps(predictor, x);
  const policies::ZapTally tally = maps.tally(0.1f);
  // Predicted in parts, as all at once.
  const policies::ZapTally whole =
      policies::tally_thresholds(predictor, x, std::vector<float>{0.1f})[0];
  CHECK(tally.skipped() == whole.skipped());
  CHECK(tally.sum_lost == whole.sum_lost);
  CHECK(maps.error(0.1f).value == Approx(tally.error()).epsilon(1e-12));
  CHECK(maps.error(0.1f).error > 0);
  CHECK(maps.bound().value ==
        Approx(static_cast<double>(tally.potential()) / static_cast<double>(tally.elements())));
  CHECK(maps.error(-std::numeric_limits<float>::infinity()).value == 0);
}

TEST_CASE("a random predictor loses what it skips", "[fast]") {
  const policies::ZapPredictor predictor("relu", {10, 10, 4}, 5, 2);
  const net::Tensor x = numemu::testing::correlated_maps(200, 10, 10, 4, 5);
  const PredictedMaps maps(predictor, x);
  const double rest = maps.error(std::numeric_limits<float>::infinity()).value;
  for (const double rate : {0.0, 0.3, 1.0}) {
    const RatioEstimate error = maps.random_error(rate, 4);
    // 1e-12: two float64 sums in another order, where no draw decides.
    CHECK(std::fabs(error.value - rate * rest) <= 4 * error.error + 1e-12);
  }
  CHECK(maps.random_error(0.3, 4).value != maps.random_error(0.3, 5).value);
}
