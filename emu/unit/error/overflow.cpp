#include "emu/unit/error/overflow.hpp"

#include <algorithm>
#include <cmath>

#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"

namespace numemu::unit {
namespace {

constexpr double kSiegmund = 0.5826;  // -zeta(1/2) / sqrt(2 pi)
constexpr double kFarthestTail = 40;  // standard deviations

double mean_of(const SumLaw& s) { return s.mean * s.count; }
double deviation(const SumLaw& s) { return std::sqrt(s.variance * s.count); }

double above_at_end(const SumLaw& s, double limit) {
  const double sd = deviation(s);
  if (sd == 0) return mean_of(s) > limit ? 1 : 0;
  return normal::cdf((mean_of(s) - limit) / sd);
}

/// The running maximum above the limit.
double above_on_way(const SumLaw& s, double limit) {
  const double sd = deviation(s);
  if (sd == 0) return std::max(0.0, mean_of(s)) > limit ? 1 : 0;
  const double from = limit + kSiegmund * std::sqrt(s.variance);
  const double reflected = normal::cdf((-from - mean_of(s)) / sd);
  const double factor =
      reflected > 0 ? portable::exp(2 * s.mean * from / s.variance) * reflected : 0;
  return std::min(1.0, normal::cdf((mean_of(s) - from) / sd) + factor);
}

SumLaw mirrored(SumLaw s) {
  s.mean = -s.mean;
  return s;
}

/// The integral of 2 (x - limit) P(X > x) from the limit on: E[(X - limit)^2; X > limit].
template <class Above>
double square_beyond(const SumLaw& s, double limit, const Above& above) {
  constexpr int kSteps = 2000;
  const double end = mean_of(s) + kFarthestTail * deviation(s);
  if (!(end > limit)) return 0;
  const double step = (end - limit) / kSteps;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double x = (i + 0.5) * step;
    sum += 2 * x * above(s, limit + x) * step;
  }
  return sum;
}

template <class Above>
double both_ends(const SumLaw& s, double limit, const Above& above) {
  return square_beyond(s, limit, above) + square_beyond(mirrored(s), limit, above);
}

}  // namespace

double beyond_at_end(const SumLaw& s, double limit) {
  return std::min(1.0, above_at_end(s, limit) + above_at_end(mirrored(s), limit));
}

double beyond_on_way(const SumLaw& s, double limit) {
  return std::min(1.0, above_on_way(s, limit) + above_on_way(mirrored(s), limit));
}

double saturation_noise(const SumLaw& s, double limit) { return both_ends(s, limit, above_on_way); }

double clipping_noise(const SumLaw& s, double limit) { return both_ends(s, limit, above_at_end); }

double wrapping_noise(const SumLaw& s, double limit) {
  // (2 j limit)^2 in turn j: the square grows by 4 limit^2 (2 j - 1) where |S| passes its start.
  double sum = 0;
  for (int j = 1; j < 1000; ++j) {
    const double share = beyond_at_end(s, (2 * j - 1) * limit);
    sum += 4 * limit * limit * (2 * j - 1) * share;
    if (share < 1e-12) break;
  }
  return sum;
}

}  // namespace numemu::unit
