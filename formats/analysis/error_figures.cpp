// Sums of errors and masses, and the means and variances they stand for.
#include "formats/analysis/error_figures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "formats/portable/math.hpp"

namespace numemu {
namespace {

Figure share(double part, double whole) {
  const double p = whole > 0 ? part / whole : 0;
  return {p, std::max(0.0, p * (1 - p))};
}

/// The mean over `count` of all the draws: n draws hold n * count / weight that count.
Figure moments(double first, double second, double count, double weight) {
  if (!(count > 0)) return {};
  const double mean = first / count;
  return {mean, std::max(0.0, second / count - mean * mean) * weight / count};
}

/// The variance of projection / signal is that of (x e - ratio x^2) / E[x^2].
Figure gain_of(const FigureSums& s) {
  if (!(s.signal > 0)) return {};
  const double ratio = s.projection / s.signal, power = s.signal / s.finite;
  const double square =
      (s.cross - 2 * ratio * s.projection_signal + ratio * ratio * s.signal_square) / s.finite;
  return {ratio, std::max(0.0, square) / (power * power) * s.weight / s.finite};
}

/// The variance of log(signal / square) is that of x^2 / signal - e^2 / square.
Figure decibels(const FigureSums& s) {
  constexpr double kDecibels = 10 / std::numbers::ln10;
  if (!(s.finite > 0) || s.square == 0) return {std::numeric_limits<double>::infinity(), 0};
  const double x = s.signal / s.finite, e = s.square / s.finite;
  const double relative = s.signal_square / s.finite / (x * x) + s.fourth / s.finite / (e * e) -
                          2 * s.cross / s.finite / (x * e);
  return {kDecibels * portable::log(x / e),
          kDecibels * kDecibels * std::max(0.0, relative) * s.weight / s.finite};
}

}  // namespace

void FigureSums::add(double w, double x, double value) {
  weight += w;
  if (!std::isfinite(value)) {
    (std::isnan(value) ? nan : infinite) += w;
    return;
  }
  const double e = value - x, e2 = e * e, x2 = x * x;
  finite += w;
  error += w * e;
  square += w * e2;
  fourth += w * e2 * e2;
  signal += w * x2;
  signal_square += w * x2 * x2;
  cross += w * x2 * e2;
  projection += w * x * e;
  projection_signal += w * x2 * x * e;
  if (x == 0) return;
  outward += w * (x > 0 ? e : -e);
  outward_square += w * e2;
  const double r = e / x, r2 = r * r;
  nonzero += w;
  relative += w * r2;
  relative_fourth += w * r2 * r2;
  if (value == 0) to_zero += w;
}

FigureSums& FigureSums::operator+=(const FigureSums& other) {
  weight += other.weight;
  finite += other.finite;
  error += other.error;
  square += other.square;
  fourth += other.fourth;
  nonzero += other.nonzero;
  relative += other.relative;
  relative_fourth += other.relative_fourth;
  signal += other.signal;
  signal_square += other.signal_square;
  cross += other.cross;
  projection += other.projection;
  projection_signal += other.projection_signal;
  outward += other.outward;
  outward_square += other.outward_square;
  overflow += other.overflow;
  underflow += other.underflow;
  to_zero += other.to_zero;
  infinite += other.infinite;
  nan += other.nan;
  return *this;
}

ErrorFigures FigureSums::figures() const {
  ErrorFigures out;
  out.error = moments(error, square, finite, weight);
  out.gain = gain_of(*this);
  out.outward = moments(outward, outward_square, finite, weight);
  out.square = moments(square, fourth, finite, weight);
  out.relative = moments(relative, relative_fourth, nonzero, weight);
  out.signal = moments(signal, signal_square, finite, weight);
  out.sqnr = decibels(*this);
  out.overflow = share(overflow, weight);
  out.underflow = share(underflow, weight);
  out.to_zero = share(to_zero, weight);
  out.infinite = share(infinite, weight);
  out.nan = share(nan, weight);
  return out;
}

}  // namespace numemu
