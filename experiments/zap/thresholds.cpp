// Curves per layer, and a knapsack with one choice per layer.
#include "experiments/zap/thresholds.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "formats/error.hpp"
#include "formats/float_guard.hpp"

namespace numemu::experiments {
namespace {

constexpr int kMeasured = static_cast<int>(2 * kLargestThreshold / kMeasuredStep + 1.5);
constexpr int kChoices = static_cast<int>(2 * kLargestThreshold / kChosenStep + 1.5);

double measured_at(int i) { return (i - kMeasured / 2) / (1 / kMeasuredStep); }
double choice_at(int i) { return (i - kChoices / 2) / (1 / kChosenStep); }

/// A fitted curve may leave what an error or a share can be.
double share_at(const LogisticCurve& curve, double threshold) {
  return std::clamp(curve.at(threshold), 0.0, 1.0);
}

double remaining_at(const ThresholdCurves& layer, double threshold) {
  return layer.macs * (1 - share_at(layer.saving, threshold));
}

/// The error of each threshold in parts of the budget, rounded up.
std::vector<std::int64_t> parts_of(const ThresholdCurves& layer, double budget) {
  constexpr double kMost = 1e15;  // no sum of these leaves the integers
  std::vector<std::int64_t> parts;
  for (int i = 0; i < kChoices; ++i) {
    const double part = std::ceil(share_at(layer.error, choice_at(i)) / budget * kBudgetParts);
    parts.push_back(static_cast<std::int64_t>(std::min(part, kMost)));
  }
  return parts;
}

}  // namespace

std::vector<float> measured_thresholds() {
  std::vector<float> thresholds;
  for (int i = 0; i < kMeasured; ++i) thresholds.push_back(static_cast<float>(measured_at(i)));
  return thresholds;
}

ThresholdCurves threshold_curves(std::span<const policies::ZapTally> tallies, double macs) {
  if (tallies.size() != static_cast<std::size_t>(kMeasured)) {
    throw Error("threshold curves: expected the tallies of " + std::to_string(kMeasured) +
                " thresholds, got " + std::to_string(tallies.size()));
  }
  std::vector<double> x, error, saving;
  for (int i = 0; i < kMeasured; ++i) {
    x.push_back(measured_at(i));
    error.push_back(tallies[i].error());
    saving.push_back(tallies[i].saving());
  }
  return {macs, fit_logistic(x, error), fit_logistic(x, saving)};
}

ThresholdChoice choose_thresholds(std::span<const ThresholdCurves> layers, double budget) {
  if (!(budget > 0 && std::isfinite(budget)))
    throw Error("thresholds: expected a budget of error above 0");
  const FloatGuard guard;
  // Every layer costs the error of its least threshold; the rest of the budget is distributed.
  std::vector<std::vector<std::int64_t>> prices;
  std::int64_t left = kBudgetParts;
  for (const ThresholdCurves& layer : layers) {
    const std::vector<std::int64_t> parts = parts_of(layer, budget);
    left -= parts[0];
    std::vector<std::int64_t>& price = prices.emplace_back();
    for (const std::int64_t part : parts)
      price.push_back(std::max<std::int64_t>(0, part - parts[0]));
  }
  left = std::max<std::int64_t>(0, left);
  // least[p]: multiply-adds of the layers so far for at most p parts; choices[layer][p] is the
  // layer's threshold there.
  std::vector<double> least(static_cast<std::size_t>(left) + 1, 0);
  std::vector<std::vector<int>> choices;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<double> next(least.size(), HUGE_VAL);
    std::vector<int>& choice = choices.emplace_back(least.size());
    for (int i = 0; i < kChoices; ++i) {
      const double macs = remaining_at(layers[l], choice_at(i));
      for (std::int64_t p = prices[l][i]; p <= left; ++p) {
        if (!(least[p - prices[l][i]] + macs < next[p])) continue;
        next[p] = least[p - prices[l][i]] + macs;
        choice[p] = i;
      }
    }
    least = std::move(next);
  }
  ThresholdChoice result;
  result.thresholds.resize(layers.size());
  for (std::size_t l = layers.size(); l-- > 0;) {
    const int chosen = choices[l][left];
    left -= prices[l][chosen];
    result.thresholds[l] = choice_at(chosen);
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    result.error += share_at(layers[l].error, result.thresholds[l]);
    result.remaining += remaining_at(layers[l], result.thresholds[l]);
  }
  return result;
}

}  // namespace numemu::experiments
