#include "formats/analysis/limits.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "formats/codec.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu {
namespace {

constexpr double kUnbounded = HUGE_VAL;

/// The nearest level of each number, levels ascending: std::upper_bound() without branches, which
/// nothing could foretell.
std::size_t level_of(const std::vector<double>& middles, double x) {
  std::size_t first = 0;
  for (std::size_t left = middles.size(); left > 0; left /= 2) {
    const std::size_t half = left - left / 2;
    first += half * static_cast<std::size_t>(!(x < middles[first + half - 1]));
  }
  return first;
}

std::vector<double> middles_of(const std::vector<double>& levels) {
  std::vector<double> middles;
  for (std::size_t i = 1; i < levels.size(); ++i)
    middles.push_back((levels[i - 1] + levels[i]) / 2);
  return middles;
}

/// Positive scales in ascending order that serve largest magnitudes up to `largest`.
std::vector<double> scales_of(LimitScale kind, double largest) {
  std::vector<double> scales;
  if (kind == LimitScale::e8m0) {
    for (int k = -140; k <= 126; ++k) scales.push_back(std::ldexp(1.0, k));
    return scales;
  }
  const Format& e4m3 = find_format("float8_e4m3fn");
  const double top = largest_value(e4m3);
  for (const double v : finite_values(e4m3))
    if (v > 0) scales.push_back(v / top * largest);
  return scales;
}

}  // namespace

double nearest_level_mse(const std::vector<double>& levels, const Density& law) {
  const std::vector<double> middles = middles_of(levels);
  return pairwise_sum(std::ssize(levels), [&](std::int64_t k) {
    const auto i = static_cast<std::size_t>(k);
    const double low = i == 0 ? -kUnbounded : middles[i - 1];
    const double high = i + 1 == levels.size() ? kUnbounded : middles[i];
    const Density::Moments m = law.moments(low, high);
    return m.p2 - 2 * levels[i] * m.p1 + levels[i] * levels[i] * m.p0;
  });
}

double differential_entropy(const Density& law) {
  constexpr double kAt[] = {0.1488743389816312, 0.4333953941292472, 0.6794095682990244,
                            0.8650633666889845, 0.9739065285171717};
  constexpr double kWeight[] = {0.2955242247147529, 0.2692667193099963, 0.2190863625159820,
                                0.1494513491505806, 0.0666713443086881};
  const std::vector<double> knots = law.knots();
  return pairwise_sum(std::ssize(knots) - 1, [&](std::int64_t k) {
    const double a = knots[static_cast<std::size_t>(k)], b = knots[static_cast<std::size_t>(k + 1)];
    double sum = 0;
    for (int i = 0; i < 5; ++i) {
      for (const double t : {-kAt[i], kAt[i]}) {
        const double p = law.pdf((a + b) / 2 + t * (b - a) / 2);
        if (p > 0) sum -= kWeight[i] * (b - a) / 2 * p * portable::log2(p);
      }
    }
    return sum;
  });
}

double shannon_bound(const Density& law, double bits) {
  const Density::Moments m = law.moments(-kUnbounded, kUnbounded);
  const double variance = m.p2 - m.p1 * m.p1;
  const double bound = portable::exp2(2 * (differential_entropy(law) - bits)) /
                       (2 * std::numbers::pi * std::numbers::e);
  return std::min(bound, variance);
}

namespace {

/// Lloyd's algorithm over levels and scales of blocks, from the scales that `chosen` begins with.
class BlockLloyd {
 public:
  BlockLloyd(const float* x, std::int64_t n, std::int64_t block, const std::vector<double>& grid,
             std::vector<std::size_t> chosen, int count)
      : x_(x),
        n_(n),
        block_(block),
        grid_(grid),
        chosen_(std::move(chosen)),
        levels_(static_cast<std::size_t>(count)) {
    std::vector<double> scaled(static_cast<std::size_t>(n));
    for (std::size_t b = 0; b < chosen_.size(); ++b) {
      for (std::int64_t i = begin_of(b); i < begin_of(b + 1); ++i)
        scaled[static_cast<std::size_t>(i)] = x[i] / grid_[chosen_[b]];
    }
    std::sort(scaled.begin(), scaled.end());
    // Even steps keep the tails, quantiles the middle.
    for (int k = 0; k < count; ++k) {
      const double even = scaled.front() + (k + 0.5) / count * (scaled.back() - scaled.front());
      const auto at = static_cast<std::size_t>((2 * k + 1) * n / (2 * count));
      levels_[static_cast<std::size_t>(k)] = (scaled[at] + even) / 2;
    }
  }

  void choose_levels() {
    const std::vector<double> middles = middles_of(levels_);
    std::vector<double> weight(levels_.size()), sum(levels_.size());
    for (std::size_t b = 0; b < chosen_.size(); ++b) {
      const double s = grid_[chosen_[b]];
      for (std::int64_t i = begin_of(b); i < begin_of(b + 1); ++i) {
        const std::size_t k = level_of(middles, x_[i] / s);
        weight[k] += s * s;
        sum[k] += s * x_[i];
      }
    }
    for (std::size_t k = 0; k < levels_.size(); ++k)
      if (weight[k] > 0) levels_[k] = sum[k] / weight[k];
  }

  /// Of the scales up to `reach` beside the present one of each block the best; the squared error.
  double choose_scales(std::size_t reach) {
    const std::vector<double> middles = middles_of(levels_);
    std::vector<double> errors(chosen_.size());
#pragma omp parallel for schedule(static)
    for (std::size_t b = 0; b < chosen_.size(); ++b) {
      const std::size_t from = chosen_[b];
      double least = kUnbounded;
      for (std::size_t c = from - std::min(from, reach);
           c <= std::min(grid_.size() - 1, from + reach); ++c) {
        double sum = 0;
        for (std::int64_t i = begin_of(b); i < begin_of(b + 1); ++i) {
          const double off = x_[i] - grid_[c] * levels_[level_of(middles, x_[i] / grid_[c])];
          sum += off * off;
        }
        if (sum < least) {
          least = sum;
          chosen_[b] = c;
        }
      }
      errors[b] = least;
    }
    return pairwise_sum(std::ssize(errors),
                        [&](std::int64_t b) { return errors[static_cast<std::size_t>(b)]; });
  }

 private:
  std::int64_t begin_of(std::size_t b) const {
    return std::min(n_, static_cast<std::int64_t>(b) * block_);
  }

  const float* x_;
  std::int64_t n_, block_;
  const std::vector<double>& grid_;
  std::vector<std::size_t> chosen_;
  std::vector<double> levels_;
};

}  // namespace

double block_limit(const float* x, std::int64_t n, std::int64_t block, int count, LimitScale kind) {
  constexpr int kRounds = 8, kSteps = 6, kFirstSteps = 30;
  const auto blocks = static_cast<std::size_t>((n + block - 1) / block);
  std::vector<double> amax(blocks);
  double signal = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double& largest = amax[static_cast<std::size_t>(i / block)];
    largest = std::max(largest, std::abs(double{x[i]}));
    signal += double{x[i]} * x[i];
  }
  const std::vector<double> grid = scales_of(kind, *std::ranges::max_element(amax));
  const auto at_least = [&](double wanted) {
    const auto at = std::lower_bound(grid.begin(), grid.end(), wanted) - grid.begin();
    return static_cast<std::size_t>(std::min<std::ptrdiff_t>(at, std::ssize(grid) - 1));
  };
  std::vector<std::size_t> by_block;
  for (const double largest : amax) by_block.push_back(at_least(largest));
  const std::vector<std::size_t> common(blocks,
                                        at_least(2 * std::sqrt(signal / static_cast<double>(n))));
  double least = kUnbounded;
  for (const auto& start : {by_block, common}) {
    BlockLloyd lloyd(x, n, block, grid, start, count);
    for (int i = 0; i < kFirstSteps; ++i) lloyd.choose_levels();
    for (int round = 0; round < kRounds; ++round) {
      // Codes of E4M3 within an octave; two powers.
      least = std::min(least, lloyd.choose_scales(kind == LimitScale::e8m0 ? 2 : 8));
      for (int i = 0; i < kSteps; ++i) lloyd.choose_levels();
    }
  }
  return least / signal;
}

}  // namespace numemu
