#include "emu/stats/kolmogorov.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace numemu::stats {

double ks_distance(const std::vector<float>& sorted, const Density& density) {
  const auto n = static_cast<std::int64_t>(sorted.size());
  const double jump = density.zero_mass();
  // Between two values of the sample both functions are monotone (F may jump at zero only if the
  // sample has no zero: then the jump is compared from both sides as well), so the supremum is at a
  // value, from its left or its right.
  double distance = 0;
  if (jump > 0) {
    const auto below = std::lower_bound(sorted.begin(), sorted.end(), 0.0F) - sorted.begin();
    const auto upto = std::upper_bound(sorted.begin(), sorted.end(), 0.0F) - sorted.begin();
    const double at_zero = density.cdf(0);
    distance = std::max(std::abs(static_cast<double>(below) / n - (at_zero - jump)),
                        std::abs(static_cast<double>(upto) / n - at_zero));
  }
  // A maximum does not depend on the order of its terms.
#pragma omp parallel for schedule(static) reduction(max : distance) if (n > (1 << 14))
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = sorted[i];
    const bool first = i == 0 || sorted[i - 1] != value,
               last = i == n - 1 || sorted[i + 1] != value;
    if (!first && !last) continue;
    const double right = density.cdf(value), left = value == 0 ? right - jump : right;
    if (first) distance = std::max(distance, std::abs(static_cast<double>(i) / n - left));
    if (last) distance = std::max(distance, std::abs(static_cast<double>(i + 1) / n - right));
  }
  return distance;
}

double ks_threshold(std::int64_t n) { return 0.03 + 1.36 / std::sqrt(static_cast<double>(n)); }

}  // namespace numemu::stats
