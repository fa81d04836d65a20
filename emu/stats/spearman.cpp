#include "emu/stats/spearman.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "emu/stats/resampling.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu::stats {
namespace {

__extension__ typedef __int128 Wide;

/// Twice the mid-ranks: whole numbers.
std::vector<std::int64_t> doubled_ranks(const std::vector<double>& values) {
  const std::size_t n = values.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<std::int64_t> ranks(n);
  for (std::size_t first = 0, end = 0; first < n; first = end) {
    while (end < n && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i)
      ranks[order[i]] = static_cast<std::int64_t>(first + 1 + end);
  }
  return ranks;
}

void require_pairs(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() != y.size()) {
    throw Error("rank correlation: expected as many values on both sides, found " +
                std::to_string(x.size()) + " and " + std::to_string(y.size()));
  }
  const auto nan = [](double v) { return std::isnan(v); };
  if (std::any_of(x.begin(), x.end(), nan) || std::any_of(y.begin(), y.end(), nan))
    throw Error("rank correlation: expected values that have an order, found NaN");
}

}  // namespace

std::vector<double> mid_ranks(const std::vector<double>& values) {
  const std::vector<std::int64_t> doubled = doubled_ranks(values);
  std::vector<double> ranks(doubled.size());
  std::transform(doubled.begin(), doubled.end(), ranks.begin(),
                 [](std::int64_t rank) { return static_cast<double>(rank) / 2; });
  return ranks;
}

double spearman(const std::vector<double>& x, const std::vector<double>& y) {
  require_pairs(x, y);
  const std::vector<std::int64_t> a = doubled_ranks(x), b = doubled_ranks(y);
  const auto n = static_cast<std::int64_t>(a.size());
  // Doubled ranks have mean n + 1, so that every sum is a whole number and +-1 come out exactly.
  Wide ab = 0, aa = 0, bb = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const Wide u = a[i] - (n + 1), v = b[i] - (n + 1);
    ab += u * v;
    aa += u * u;
    bb += v * v;
  }
  if (aa == 0 || bb == 0) return std::numeric_limits<double>::quiet_NaN();
  if (aa == bb) return static_cast<double>(ab) / static_cast<double>(aa);
  return static_cast<double>(ab) /
         (std::sqrt(static_cast<double>(aa)) * std::sqrt(static_cast<double>(bb)));
}

Interval spearman_interval(double rho, std::int64_t n) {
  if (std::fabs(rho) > 1)
    throw Error("rank correlation: expected one in [-1, 1], found " + std::to_string(rho));
  constexpr std::int64_t kFewest = 4;
  if (n < kFewest || std::isnan(rho)) return {-1, 1};
  const auto pairs = static_cast<double>(n);
  const double most = 1 - 6 / (pairs * (pairs * pairs - 1));
  const double taken = std::clamp(rho, -most, most), z = portable::atanh(taken);
  const double half = kNormal95 * std::sqrt((1 + taken * taken / 2) / (pairs - 3));
  return {std::min(rho, portable::tanh(z - half)), std::max(rho, portable::tanh(z + half))};
}

Interval spearman_interval(const std::vector<double>& x, const std::vector<double>& y,
                           std::uint64_t seed, std::int64_t resamples) {
  require_pairs(x, y);
  std::vector<double> drawn_x(x.size()), drawn_y(y.size());
  const Interval interval = bootstrap_interval(static_cast<std::int64_t>(x.size()), resamples, seed,
                                               [&](const std::vector<std::int64_t>& drawn) {
                                                 for (std::size_t i = 0; i < drawn.size(); ++i) {
                                                   drawn_x[i] = x[drawn[i]];
                                                   drawn_y[i] = y[drawn[i]];
                                                 }
                                                 return spearman(drawn_x, drawn_y);
                                               });
  return std::isnan(interval.low) ? Interval{-1, 1} : interval;
}

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
  constexpr double kFar = 10;     // standard deviations, beyond which a normal law has nothing
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
      const double wins = probability_above(
          {figures[i].mean - figures[j].mean, figures[i].variance + figures[j].variance}, 0);
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
