#include "experiments/tracin/rounded_dots.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "emu/stats/spearman.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::tracin {

Moments product(const Moments& a, const Moments& b) {
  return {a.mean * b.mean,
          a.variance * b.variance + a.variance * b.mean * b.mean + b.variance * a.mean * a.mean};
}

Moments sum(const Moments& a, const Moments& b, double factor) {
  return {a.mean + factor * b.mean, a.variance + factor * factor * b.variance};
}

StochasticLaw::StochasticLaw(const Format& format, const Rounding& rounding)
    : law_(outcome_law(format, rounding, Overflow::saturate)) {}

RoundedElement StochasticLaw::of(double x, double scale) const {
  if (x == 0) return {};
  const OutcomePiece& piece = piece_at(law_.pieces, x, scale);
  if (!piece.stochastic()) return {0, 2 * scale * piece.near.value};
  const double up =
      up_probability(law_.rounding, (x / scale - piece.from) / (piece.to - piece.from));
  const double gap = scale * (piece.far.value - piece.near.value);
  return {up * (1 - up) * gap * gap, scale * (piece.far.value + piece.near.value)};
}

std::vector<RoundedElement> StochasticLaw::of(std::span<const float> x, double scale) const {
  std::vector<RoundedElement> all;
  all.reserve(x.size());
  for (const float element : x) all.push_back(of(double{element}, scale));
  return all;
}

Moments two_draws(const RoundedVector& x, const RoundedVector& y) {
  Moments dot;
  for (std::size_t i = 0; i < x.x.size(); ++i) {
    const double a = x.x[i], b = y.x[i], v = x.rounded[i].variance, w = y.rounded[i].variance;
    dot.mean += a * b;
    dot.variance += a * a * w + b * b * v + v * w;
  }
  return dot;
}

Moments one_draw(const RoundedVector& x) {
  Moments square;
  for (std::size_t i = 0; i < x.x.size(); ++i) {
    const double a = x.x[i], v = x.rounded[i].variance, ends = x.rounded[i].ends;
    square.mean += a * a + v;
    square.variance += v * ends * ends;
  }
  return square;
}

namespace {

constexpr int kHalvings = 200;  // of an interval of doubles, to neighbours

/// P(X > t), one half where X is t.
double above(const Moments& x, double t) {
  if (x.variance > 0) return portable::erfc((t - x.mean) / std::sqrt(2 * x.variance)) / 2;
  return x.mean > t ? 1 : x.mean < t ? 0 : 0.5;
}

}  // namespace

double expected_share(const std::vector<Moments>& figures, const std::vector<std::uint8_t>& marked,
                      std::int64_t top) {
  constexpr double kFar = 10;  // standard deviations, beyond which a normal law has nothing
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const Moments& x : figures) {
    low = std::min(low, x.mean - kFar * std::sqrt(x.variance));
    high = std::max(high, x.mean + kFar * std::sqrt(x.variance));
  }
  for (int step = 0; step < kHalvings; ++step) {
    const double middle = low + (high - low) / 2;
    double expected = 0;
    for (const Moments& x : figures) expected += above(x, middle);
    (expected > static_cast<double>(top) ? low : high) = middle;
  }
  double found = 0, all = 0;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (marked[i] == 0) continue;
    found += above(figures[i], high);
    ++all;
  }
  return found / all;
}

double expected_correlation(const std::vector<double>& exact, const std::vector<Moments>& figures) {
  const std::vector<double> ranks = stats::mid_ranks(exact);
  const auto n = static_cast<double>(exact.size());
  double products = 0;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    // A pair adds its two places in both orders.
    for (std::size_t j = 0; j < i; ++j) {
      const double wins =
          above({figures[i].mean - figures[j].mean, figures[i].variance + figures[j].variance}, 0);
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

}  // namespace numemu::experiments::tracin
