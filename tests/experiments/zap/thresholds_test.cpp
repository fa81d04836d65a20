// Predictors of a layer: logistic fits, estimates on maps, thresholds within a budget of error.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "experiments/zap/zap_trial.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/zap/correlated_maps.hpp"

namespace thresholds_test {

using namespace numemu;
using namespace numemu::experiments;
using namespace numemu::policies;
using numemu::test::message_of;

namespace {

std::vector<double> grid() {
  std::vector<double> x;
  for (int i = -10; i <= 10; ++i) x.push_back(i / 10.0);
  return x;
}

double squares(const LogisticCurve& curve, const std::vector<double>& x,
               const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += std::pow(y[i] - curve.at(x[i]), 2);
  return sum;
}

}  // namespace

TEST_CASE("the value is the formula", "[fast]") {
  const LogisticCurve curve{0.6, 5, 1, 0.1};
  for (const double x : grid())
    CHECK(curve.at(x) == Approx(0.1 + 0.6 / (1 + std::exp(-5 * x + 1))).epsilon(1e-14));
}

TEST_CASE("points on a curve give it back", "[fast]") {
  const std::vector<double> x = grid();
  for (const double b : {2.0, 5.0, 12.0, 30.0})
    for (const double middle : {-0.5, 0.0, 0.3}) {
      const LogisticCurve truth{0.4, b, b * middle, 0.05};
      std::vector<double> y;
      for (const double at : x) y.push_back(truth.at(at));
      const LogisticCurve found = fit_logistic(x, y);
      CHECK(found.rms < 1e-6);
      for (const double at : {-1.0, -0.33, 0.0, 0.07, 0.9})
        CHECK(std::fabs(found.at(at) - truth.at(at)) < 1e-5);
    }
}

TEST_CASE("no neighbour of the fit is better", "[fast]") {
  const std::vector<double> x = grid();
  const RandomSource random{4, Stream::vectors, 5, 0};
  std::vector<double> y;
  for (std::size_t i = 0; i < x.size(); ++i)
    y.push_back(LogisticCurve{0.5, 6, 0.5, 0}.at(x[i]) + 0.02 * random.uniform(i));
  const LogisticCurve fit = fit_logistic(x, y);
  const double least = squares(fit, x, y);
  CHECK(fit.rms == Approx(std::sqrt(least / 21)));
  CHECK(fit.rms < 0.02);
  for (const double step : {1e-3, -1e-3})
    for (int p = 0; p < 4; ++p) {
      LogisticCurve near = fit;
      (p == 0 ? near.a : p == 1 ? near.b : p == 2 ? near.c : near.d) += step;
      CHECK(squares(near, x, y) > least);
    }
}

TEST_CASE("flat points and a single step have fits", "[fast]") {
  const std::vector<double> x = grid();
  const LogisticCurve flat = fit_logistic(x, std::vector<double>(x.size(), 0.25));
  CHECK(flat.at(-1) == 0.25);
  CHECK(flat.at(1) == 0.25);
  CHECK(flat.rms == 0);
  std::vector<double> y(x.size(), 0);
  for (std::size_t i = 12; i < y.size(); ++i) y[i] = 1;
  const LogisticCurve step = fit_logistic(x, y);
  CHECK(step.rms < 0.01);
  CHECK(step.b > 0);
}

TEST_CASE("points that no curve can be fitted to are refused", "[fast]") {
  const std::vector<double> three{0, 1, 2}, four{0, 1, 2, NAN}, good{0, 1, 2, 3};
  CHECK_THAT(message_of([&] { fit_logistic(three, three); }), Catch::Contains("at least 4 points"));
  CHECK_THAT(message_of([&] { fit_logistic(good, three); }), Catch::Contains("one value each"));
  CHECK_THAT(message_of([&] { fit_logistic(good, four); }), Catch::Contains("finite"));
}

TEST_CASE("a ratio of sums and its error by images", "[fast]") {
  const Estimate ratio = ratio_of({1, 2, 3}, {10, 10, 20});
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
      policies::tally_of(predictor.mask(), x, predictor.predict(x), 0.1f);
  CHECK(tally.skipped() == whole.skipped());
  CHECK(tally.sum_lost == whole.sum_lost);
  CHECK(maps.error(0.1f).value == Approx(tally.error()).epsilon(1e-12));
  CHECK(maps.error(0.1f).error > 0);
  CHECK(maps.bound().value == Approx(static_cast<double>(tally.zeros_skipped + tally.zeros_kept) /
                                     static_cast<double>(tally.elements())));
  CHECK(maps.error(-std::numeric_limits<float>::infinity()).value == 0);
}

TEST_CASE("a random predictor loses what it skips", "[fast]") {
  const policies::ZapPredictor predictor("relu", {10, 10, 4}, 5, 2);
  const net::Tensor x = numemu::testing::correlated_maps(200, 10, 10, 4, 5);
  const PredictedMaps maps(predictor, x);
  const double rest = maps.error(std::numeric_limits<float>::infinity()).value;
  for (const double rate : {0.0, 0.3, 1.0}) {
    const Estimate error = maps.random_error(rate, 4);
    // 1e-12: two float64 sums in another order, where no draw decides.
    CHECK(std::fabs(error.value - rate * rest) <= 4 * error.error + 1e-12);
  }
  CHECK(maps.random_error(0.3, 4).value != maps.random_error(0.3, 5).value);
}

// Against trying every pair of thresholds.

namespace {

const ThresholdCurves kFirst{1000, {0.5, 6, 1, -0.002}, {0.4, 8, -1, 0}};
const ThresholdCurves kSecond{3000, {0.3, 10, 4, 0}, {0.5, 5, 0, 0.01}};

double share(const LogisticCurve& curve, double x) { return std::clamp(curve.at(x), 0.0, 1.0); }
double remaining(const ThresholdCurves& layer, double x) {
  return layer.macs * (1 - share(layer.saving, x));
}

/// The least remaining multiply-adds over all pairs of thresholds within the budget.
double best_pair(double budget) {
  double best = HUGE_VAL;
  for (int i = -100; i <= 100; ++i)
    for (int j = -100; j <= 100; ++j) {
      const double x = i / 100.0, y = j / 100.0;
      if (share(kFirst.error, x) + share(kSecond.error, y) > budget) continue;
      best = std::min(best, remaining(kFirst, x) + remaining(kSecond, y));
    }
  return best;
}

}  // namespace

TEST_CASE("thresholds are measured from -1 to 1 in tenths", "[fast]") {
  const std::vector<float> thresholds = measured_thresholds();
  REQUIRE(thresholds.size() == 21);
  CHECK(thresholds.front() == -1);
  CHECK(thresholds[10] == 0);
  CHECK(thresholds[11] == 0.1f);
  CHECK(thresholds.back() == 1);
}

TEST_CASE("the choice is within the budget and as good as trying all pairs", "[fast]") {
  const std::vector<ThresholdCurves> layers{kFirst, kSecond};
  for (const double budget : {0.01, 0.02, 0.05, 0.1, 0.3, 0.7}) {
    const ThresholdChoice choice = choose_thresholds(layers, budget);
    REQUIRE(choice.thresholds.size() == 2);
    CHECK(choice.error <= budget);
    CHECK(choice.remaining >= best_pair(budget) - 1e-9);
    CHECK(choice.remaining <= best_pair(budget * (1 - 2.0 / kBudgetParts)) + 1e-9);
    const double x = choice.thresholds[0], y = choice.thresholds[1];
    CHECK(choice.error == Approx(share(kFirst.error, x) + share(kSecond.error, y)));
    CHECK(choice.remaining == Approx(remaining(kFirst, x) + remaining(kSecond, y)));
  }
}

TEST_CASE("budgets without end and budgets that nothing fits", "[fast]") {
  const std::vector<ThresholdCurves> layers{kFirst, kSecond};
  const ThresholdChoice most = choose_thresholds(layers, 10);
  CHECK(most.thresholds[0] > 0.9);
  CHECK(most.thresholds[1] > 0.9);
  const ThresholdCurves costly{1000, {0.5, 6, 1, 0.2}, {0.4, 8, -1, 0}};
  const ThresholdChoice over = choose_thresholds(std::vector<ThresholdCurves>{costly}, 0.1);
  // No part of the budget more than the least threshold.
  CHECK(over.error - share(costly.error, -1) <= 0.1 / kBudgetParts);
  CHECK(over.error > 0.1);
  CHECK(choose_thresholds({}, 0.1).thresholds.empty());
  CHECK_THAT(message_of([&] { choose_thresholds(layers, 0); }), Catch::Contains("budget"));
  CHECK_THAT(message_of([&] { choose_thresholds(layers, NAN); }), Catch::Contains("budget"));
}

TEST_CASE("a layer that costs nothing gives all it can", "[fast]") {
  const ThresholdCurves free{1000, {0, 1, 0, 0}, {0.4, 8, 0, 0}};
  const ThresholdChoice choice = choose_thresholds(std::vector<ThresholdCurves>{free}, 0.01);
  CHECK(choice.thresholds[0] == 1);
}

TEST_CASE("curves come from the tallies of the measured thresholds", "[fast]") {
  std::vector<ZapTally> tallies(21);
  for (int i = 0; i < 21; ++i) {
    tallies[i].computed = 50;
    tallies[i].predicted = 50;
    tallies[i].zeros_skipped = i < 10 ? 0 : 40;
    tallies[i].sum = 10;
    tallies[i].sum_lost = i < 12 ? 0 : 2;
  }
  const ThresholdCurves curves = threshold_curves(tallies, 700);
  CHECK(curves.macs == 700);
  CHECK(std::fabs(curves.saving.at(-0.8)) < 0.01);
  CHECK(std::fabs(curves.saving.at(0.8) - 0.4) < 0.01);
  CHECK(std::fabs(curves.error.at(0.8) - 0.2) < 0.01);
  tallies.pop_back();
  CHECK_THAT(message_of([&] { threshold_curves(tallies, 1); }),
             Catch::Contains("21 thresholds, got 20"));
}

}  // namespace thresholds_test
