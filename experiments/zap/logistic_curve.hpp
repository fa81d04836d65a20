// A logistic curve through measured points: how error and saving of a layer grow with its
// threshold.
#pragma once
#include <span>

namespace numemu::experiments {

/// y = d + a / (1 + exp(-b x + c)).
struct LogisticCurve {
  double a = 0, b = 1, c = 0, d = 0;
  double rms = 0;  ///< root of the mean squared residual at the points it was fitted to

  double at(double x) const;
};

/// Least squares by Levenberg (1944) and Marquardt (1963) from a start that the points' range
/// gives; b >= 0. Same bits everywhere. Points of one height give a = 0. Throws Error for fewer
/// than 4 points, spans of different lengths, and values that are not finite.
LogisticCurve fit_logistic(std::span<const double> x, std::span<const double> y);

}  // namespace numemu::experiments
