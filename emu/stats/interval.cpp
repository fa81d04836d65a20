#include "emu/stats/interval.hpp"

#include <algorithm>
#include <cmath>

namespace numemu::stats {

Interval wilson(std::int64_t successes, std::int64_t n) {
  if (n <= 0) return {0, 1};
  const auto count = static_cast<double>(n);
  const double p = static_cast<double>(successes) / count;
  const double centre = p + kNormal95 * kNormal95 / (2 * count);
  const double half =
      kNormal95 * std::sqrt(p * (1 - p) / count + kNormal95 * kNormal95 / (4 * count * count));
  const double norm = 1 + kNormal95 * kNormal95 / count;
  return {successes == 0 ? 0 : (centre - half) / norm, successes == n ? 1 : (centre + half) / norm};
}

Interval paired_difference(std::int64_t only1, std::int64_t only2, std::int64_t n) {
  const double count = static_cast<double>(n) + 2;
  const double b = static_cast<double>(only1) + 0.5, c = static_cast<double>(only2) + 0.5;
  const double difference = (b - c) / count;
  const double half =
      kNormal95 * std::sqrt(std::max(0.0, b + c - (b - c) * (b - c) / count)) / count;
  return {std::max(-1.0, difference - half), std::min(1.0, difference + half)};
}

}  // namespace numemu::stats
