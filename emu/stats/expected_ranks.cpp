#include "emu/stats/expected_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "emu/stats/spearman.hpp"
#include "formats/portable/math.hpp"

namespace numemu::stats {

namespace {

/// P(X > t), one half where X is t.
double probability_above(const Moments& x, double t) {
  if (x.variance > 0) return portable::erfc((t - x.mean) / std::sqrt(2 * x.variance)) / 2;
  return x.mean > t ? 1 : x.mean < t ? 0 : 0.5;
}

}  // namespace

double expected_share(const std::vector<Moments>& figures, const std::vector<std::uint8_t>& marked,
                      std::int64_t top) {
  constexpr int kHalvings = 200;  // of an interval of doubles, to neighbours
  constexpr double kFar = 10;  // standard deviations, beyond which a normal law has nothing
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const Moments& x : figures) {
    low = std::min(low, x.mean - kFar * std::sqrt(x.variance));
    high = std::max(high, x.mean + kFar * std::sqrt(x.variance));
  }
  for (int step = 0; step < kHalvings; ++step) {
    const double middle = low + (high - low) / 2;
    double expected = 0;
    for (const Moments& x : figures) expected += probability_above(x, middle);
    (expected > static_cast<double>(top) ? low : high) = middle;
  }
  double found = 0, all = 0;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (marked[i] == 0) continue;
    found += probability_above(figures[i], high);
    ++all;
  }
  return found / all;
}

double expected_correlation(const std::vector<double>& exact, const std::vector<Moments>& figures) {
  const std::vector<double> ranks = mid_ranks(exact);
  const auto n = static_cast<double>(exact.size());
  double products = 0;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    // A pair adds its two places in both orders.
    for (std::size_t j = 0; j < i; ++j) {
      const double wins =
          probability_above({figures[i].mean - figures[j].mean, figures[i].variance + figures[j].variance}, 0);
      products += (ranks[i] - ranks[j]) * (wins - 0.5);
    }
  }
  return 12 * products / (n * (n * n - 1));
}

double share_of_top(const std::vector<double>& figures, const std::vector<std::uint8_t>& marked,
                    std::int64_t top) {
  std::vector<std::size_t> order(figures.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return figures[a] > figures[b]; });
  double found = 0;
  for (std::int64_t i = 0; i < top; ++i) found += marked[order[static_cast<std::size_t>(i)]];
  return found /
         static_cast<double>(std::accumulate(marked.begin(), marked.end(), std::int64_t{0}));
}

}  // namespace numemu::stats
