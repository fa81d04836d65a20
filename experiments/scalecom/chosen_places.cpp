#include "experiments/scalecom/chosen_places.hpp"

#include <algorithm>
#include <cmath>

#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::scalecom {
namespace {

double threshold_of(double share) { return normal::quantile(1 - share / 2); }

/// E[z^2; |z| > t], t the threshold of the share.
double square_in_largest(double share) {
  const double t = threshold_of(share);
  return 2 * (t * normal::pdf(t) + normal::cdf(-t));
}

}  // namespace

double contraction(double share, const Workers& workers) {
  const double rho = workers.correlation, r2 = rho + (1 - rho) / static_cast<double>(workers.count);
  return 1 - (r2 * square_in_largest(share) + (1 - r2) * share);
}

double least_contraction(double share) { return 1 - square_in_largest(share); }

double union_of_places(double share, const Workers& workers) {
  if (workers.correlation >= 1) return 1;
  constexpr double kEnd = 9;  // beyond, less than 1e-18 of the law of c
  const double t = threshold_of(share), common = std::sqrt(workers.correlation),
               own = std::sqrt(1 - workers.correlation);
  // The trapezoidal rule converges faster than any power of a step below what p(c) rises over.
  const double step = std::min(0x1p-5, own / 8);
  const auto nodes = static_cast<std::int64_t>(kEnd / step);
  double sum = 0;
  for (std::int64_t i = -nodes; i <= nodes; ++i) {
    const double c = static_cast<double>(i) * step;
    const double p = normal::cdf((-t - common * c) / own) + normal::cdf((-t + common * c) / own);
    sum +=
        step * normal::pdf(c) *
        -portable::expm1(static_cast<double>(workers.count) * portable::log1p(-std::min(p, 1.0)));
  }
  return sum / share;
}

}  // namespace numemu::experiments::scalecom
