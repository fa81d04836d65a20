// Predictors of one layer: its maps, error curves and their logistic fits, thresholds for a budget.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "experiments/engine/judge.hpp"
#include "policies/zap/bookkeeping.hpp"

namespace numemu::experiments {

/// y = d + a / (1 + exp(-b x + c)).
struct LogisticCurve {
  double a = 0, b = 1, c = 0, d = 0;
  double rms = 0;  ///< root of the mean squared residual at the points it was fitted to

  double at(double x) const;
  static void fields(auto& self, const auto& visit) {
    visit("a", self.a);
    visit("b", self.b);
    visit("c", self.c);
    visit("d", self.d);
    visit("rms", self.rms);
  }
};

/// Least squares by Levenberg (1944) and Marquardt (1963) from a start that the points' range
/// gives; b >= 0. Same bits everywhere. Points of one height give a = 0. Throws Error for fewer
/// than 4 points, spans of different lengths, and values that are not finite.
LogisticCurve fit_logistic(std::span<const double> x, std::span<const double> y);

// One layer's predictor on float32 maps: its curve over thresholds, and what bounds it.

/// A ratio of sums over images, with its standard error by images (linearised).
Estimate ratio_of(const std::vector<double>& parts, const std::vector<double>& wholes);

/// A predictor's maps of one set of images, predicted once.
class PredictedMaps {
 public:
  PredictedMaps(const policies::ZapPredictor&, net::Tensor maps);

  policies::ZapTally tally(float threshold) const;
  /// Share of all activations that are zero and may be skipped: no predictor saves more unharmed.
  Estimate bound() const;
  /// Error at a threshold.
  Estimate error(float threshold) const;
  /// Error where each predicted activation is skipped with that probability, whatever it is.
  Estimate random_error(double rate, std::uint64_t seed) const;

 private:
  /// Sum over the skipped, and over all, for each image.
  Estimate error_where(const std::function<bool(std::int64_t)>& skips) const;
  const policies::ZapPredictor& predictor_;
  net::Tensor x_, z_;
};

// Chooses the threshold of each layer for the least computation within a budget of error.

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
