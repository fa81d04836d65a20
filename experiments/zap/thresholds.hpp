// Chooses the threshold of each layer for the least computation within a budget of error.
#pragma once
#include <span>
#include <vector>

#include "experiments/zap/logistic_curve.hpp"
#include "policies/zap/bookkeeping.hpp"

namespace numemu::experiments {

/// Thresholds are sought in [-kLargestThreshold, kLargestThreshold].
inline constexpr double kLargestThreshold = 1;
/// Between two thresholds that are measured, and between two that may be chosen.
inline constexpr double kMeasuredStep = 0.1, kChosenStep = 0.01;

/// -1, -0.9 .. 1.
std::vector<float> measured_thresholds();

/// A layer's error and the part of its multiply-adds that is saved as functions of its threshold.
struct ThresholdCurves {
  double macs = 0;  ///< of its convolutions, per sample
  LogisticCurve error, saving;
};

/// Curves through the tallies of measured_thresholds().
ThresholdCurves threshold_curves(std::span<const policies::ZapTally>, double macs);

struct ThresholdChoice {
  std::vector<double> thresholds;  ///< one per layer
  double error = 0;                ///< expected sum over the layers
  double remaining = 0;            ///< expected multiply-adds per sample of these layers
};

inline constexpr int kBudgetParts = 2000;

/// Minimises the sum of remaining multiply-adds subject to a sum of errors <= budget (Shomron et
/// al., ECCV 2020; their solver is SLSQP) over thresholds k kChosenStep. The curves are not convex,
/// so this is a dynamic program over the budget in kBudgetParts parts, errors rounded up: never
/// over the budget, and not worse than the best choice for budget (1 - layers / kBudgetParts). The
/// least threshold wins ties. Where even the least ones of all layers are over the budget the
/// result is thresholds that cost no part more, with their `error`. Throws Error for a budget that
/// is not positive and finite.
ThresholdChoice choose_thresholds(std::span<const ThresholdCurves>, double budget);

}  // namespace numemu::experiments
