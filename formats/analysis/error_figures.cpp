// Sums of errors and masses, and the means and variances they stand for.
#include "formats/analysis/error_figures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "formats/error.hpp"
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

// Error figures over a sample: every number is looked up in its piece, by the rule and not by the
// codec.

namespace {

/// The sums, and those of the squares of each number's own expectation: the variance that the
/// random bits leave is E[q^2] less these.
struct SampleSums {
  FigureSums all;
  double error = 0, square = 0, relative = 0, projection = 0;
  double overflow = 0, underflow = 0, to_zero = 0, infinite = 0, nan = 0;

  void add(const FigureSums& one) {
    all += one;
    const auto put = [](double part, double whole, double* sum) {
      if (whole > 0) *sum += part * part / whole;
    };
    put(one.error, one.finite, &error);
    put(one.projection, one.finite, &projection);
    put(one.square, one.finite, &square);
    put(one.relative, one.nonzero, &relative);
    put(one.overflow, 1, &overflow);
    put(one.underflow, 1, &underflow);
    put(one.to_zero, 1, &to_zero);
    put(one.infinite, 1, &infinite);
    put(one.nan, 1, &nan);
  }
  SampleSums& operator+=(const SampleSums& other) {
    all += other.all;
    error += other.error;
    projection += other.projection;
    square += other.square;
    relative += other.relative;
    overflow += other.overflow;
    underflow += other.underflow;
    to_zero += other.to_zero;
    infinite += other.infinite;
    nan += other.nan;
    return *this;
  }
};

FigureSums sums_of(const OutcomeLaw& law, double scale, double x) {
  const auto up = [&](const OutcomePiece& piece) {
    if (!piece.stochastic()) return 0.0;
    return up_probability(law.rounding, (x / scale - piece.from) / (piece.to - piece.from));
  };
  const OutcomePiece& piece = piece_at(law.pieces, x, scale);
  const double p = up(piece), near = piece.near.value * scale, far = piece.far.value * scale;
  FigureSums one;
  if (p < 1) one.add(1 - p, x, near);
  if (p > 0) one.add(p, x, far);
  one.overflow = (piece.near.overflow ? 1 - p : 0) + (piece.far.overflow ? p : 0);
  const bool exact = (p == 0 && x == near) || (p == 1 && x == far);
  if (!exact) {
    const OutcomePiece& tiny = piece_at(law.tiny, x, scale);
    const double q = up(tiny);
    one.underflow = (1 - q) * tiny.near.value + q * tiny.far.value;
  }
  return one;
}

}  // namespace

ErrorFigures error_figures(const OutcomeLaw& law, double scale, const double* x, std::int64_t n) {
  if (n <= 0) throw Error("error figures of an empty sample");
  if (!(scale > 0) || std::isinf(scale))
    throw Error("error figures: the scale must be finite and positive");
  constexpr std::int64_t kChunk = 4096;
  const std::int64_t chunks = (n + kChunk - 1) / kChunk;
  std::vector<SampleSums> parts(static_cast<std::size_t>(chunks));
#pragma omp parallel for schedule(dynamic) if (chunks > 1)
  for (std::int64_t c = 0; c < chunks; ++c) {
    for (std::int64_t i = c * kChunk; i < std::min(n, (c + 1) * kChunk); ++i)
      parts[c].add(sums_of(law, scale, x[i]));
  }
  SampleSums sums;
  for (const SampleSums& part : parts) sums += part;

  ErrorFigures out = sums.all.figures();
  const auto count = static_cast<double>(n);
  const auto left = [count](double second, double explained, double share) {
    return share > 0 ? std::max(0.0, (second - explained) / share) * count / share : 0;
  };
  const FigureSums& all = sums.all;
  out.error.variance = left(all.square, sums.error, all.finite);
  // Given x, sign(x) e varies as e does, and x e as x^2 e^2, whose sum is `cross`.
  out.outward.variance = out.error.variance;
  out.gain.variance = all.signal > 0 ? std::max(0.0, all.cross - sums.projection) * count /
                                           (all.signal * all.signal)
                                     : 0;
  out.square.variance = left(all.fourth, sums.square, all.finite);
  out.relative.variance = left(all.relative_fourth, sums.relative, all.nonzero);
  out.signal.variance = 0;
  out.overflow.variance = left(all.overflow, sums.overflow, count);
  out.underflow.variance = left(all.underflow, sums.underflow, count);
  out.to_zero.variance = left(all.to_zero, sums.to_zero, count);
  out.infinite.variance = left(all.infinite, sums.infinite, count);
  out.nan.variance = left(all.nan, sums.nan, count);
  constexpr double kDecibels = 10 / std::numbers::ln10;
  const double relative_noise =
      out.square.mean > 0 ? kDecibels * kDecibels / (out.square.mean * out.square.mean) : 0;
  out.sqnr.variance = out.square.variance * relative_noise;
  return out;
}

}  // namespace numemu
