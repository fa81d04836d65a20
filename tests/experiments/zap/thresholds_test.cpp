// Thresholds within a budget of error, against trying every pair.
#include "experiments/zap/thresholds.hpp"

#include <algorithm>
#include <cmath>

#include "tests/catch.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;
using namespace numemu::policies;
using numemu::test::message_of;

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
