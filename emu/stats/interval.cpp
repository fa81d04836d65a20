#include "emu/stats/interval.hpp"

#include <algorithm>
#include <cmath>

namespace numemu::stats {

Interval wilson(std::int64_t successes, std::int64_t n, double z, double times) {
  if (n <= 0) return {0, 1};
  const double p = static_cast<double>(successes) / static_cast<double>(n);
  const double count = static_cast<double>(n) * times;
  const double centre = p + z * z / (2 * count);
  const double half = z * std::sqrt(p * (1 - p) / count + z * z / (4 * count * count));
  const double norm = 1 + z * z / count;
  return {successes == 0 ? 0 : (centre - half) / norm, successes == n ? 1 : (centre + half) / norm};
}

double share_of_none(std::int64_t n) {
  constexpr double kTail = 0.025;
  return n <= 0 ? 1 : -std::expm1(std::log(kTail) / static_cast<double>(n));
}

Interval paired_difference(std::int64_t only1, std::int64_t only2, std::int64_t n) {
  return paired_share({0, only1, only2, n}, 1, kNormal95);
}

Interval paired_share(const PairedAnswers& answers, double share, double z, double times) {
  const double count = static_cast<double>(answers.n) * times + 2;
  const double a = static_cast<double>(answers.both) * times + 0.5,
               b = static_cast<double>(answers.only1) * times + 0.5,
               c = static_cast<double>(answers.only2) * times + 0.5;
  const double sum = (1 - share) * a + b - share * c,
               squares = (1 - share) * (1 - share) * a + b + share * share * c;
  const double half = z * std::sqrt(std::max(0.0, squares - sum * sum / count)) / count;
  return {std::max(-share, sum / count - half), std::min(1.0, sum / count + half)};
}

double paired_share_variance(const PairedAnswers& answers, double share) {
  const auto a = static_cast<double>(answers.both), b = static_cast<double>(answers.only1),
             c = static_cast<double>(answers.only2), n = static_cast<double>(answers.n);
  const double mean = ((1 - share) * a + b - share * c) / n;
  return ((1 - share) * (1 - share) * a + b + share * share * c) / n - mean * mean;
}

double images_needed(double variance, double distance, double z) {
  return z * z * variance / (distance * distance);
}

std::optional<std::int64_t> least_deciding(const std::function<bool(std::int64_t)>& decides,
                                           std::int64_t n, std::int64_t most) {
  std::int64_t open = 0, decided = std::clamp<std::int64_t>(n, 1, most);
  while (!decides(decided)) {
    if (decided == most) return {};
    open = decided;
    decided = decided > most / 2 ? most : 2 * decided;
  }
  while (decided - open > 1) {
    const std::int64_t middle = open + (decided - open) / 2;
    (decides(middle) ? decided : open) = middle;
  }
  return decided;
}

}  // namespace numemu::stats
