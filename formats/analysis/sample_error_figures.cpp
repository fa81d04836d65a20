// Error figures over a sample: every number is looked up in its piece, by the rule and not by the
// codec.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "formats/analysis/error_figures.hpp"
#include "formats/error.hpp"

namespace numemu {
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
