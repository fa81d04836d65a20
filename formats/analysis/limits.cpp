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

/// The nearest level of each number, levels ascending.
std::size_t level_of(const std::vector<double>& middles, double x) {
  return static_cast<std::size_t>(std::upper_bound(middles.begin(), middles.end(), x) -
                                  middles.begin());
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
  const double variance = law.moments(-kUnbounded, kUnbounded).p2;
  const double bound = portable::exp2(2 * (differential_entropy(law) - bits)) /
                       (2 * std::numbers::pi * std::numbers::e);
  return std::min(bound, variance);
}

double block_limit(const float* x, std::int64_t n, std::int64_t block, int count, LimitScale kind) {
  constexpr int kRounds = 6, kStepsOfLloyd = 6, kFirstSteps = 30;
  const std::int64_t blocks = (n + block - 1) / block;
  double largest = 0, signal = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::abs(double{x[i]}));
    signal += double{x[i]} * x[i];
  }
  const std::vector<double> grid = scales_of(kind, largest);
  // The first scale that is not below the largest magnitude.
  std::vector<std::size_t> first(static_cast<std::size_t>(blocks)), chosen;
  for (std::int64_t b = 0; b < blocks; ++b) {
    double amax = 0;
    for (std::int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i)
      amax = std::max(amax, std::abs(double{x[i]}));
    const auto at = std::lower_bound(grid.begin(), grid.end(), amax) - grid.begin();
    first[static_cast<std::size_t>(b)] =
        static_cast<std::size_t>(std::min<std::ptrdiff_t>(at, std::ssize(grid) - 1));
  }
  chosen = first;
  const auto scale_at = [&](std::int64_t i) {
    return grid[chosen[static_cast<std::size_t>(i / block)]];
  };
  std::vector<double> levels(static_cast<std::size_t>(count));
  {
    std::vector<double> scaled(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) scaled[static_cast<std::size_t>(i)] = x[i] / scale_at(i);
    std::sort(scaled.begin(), scaled.end());
    for (int k = 0; k < count; ++k)
      levels[static_cast<std::size_t>(k)] =
          scaled[static_cast<std::size_t>((2 * k + 1) * n / (2 * count))];
    // Even steps keep the tails, quantiles the middle.
    for (int k = 0; k < count; ++k) {
      const double even = scaled.front() + (k + 0.5) / count * (scaled.back() - scaled.front());
      levels[static_cast<std::size_t>(k)] = (levels[static_cast<std::size_t>(k)] + even) / 2;
    }
  }
  const auto step_of_lloyd = [&] {
    const std::vector<double> middles = middles_of(levels);
    std::vector<double> weight(levels.size()), sum(levels.size());
    for (std::int64_t i = 0; i < n; ++i) {
      const double s = scale_at(i);
      const std::size_t k = level_of(middles, x[i] / s);
      weight[k] += s * s;
      sum[k] += s * x[i];
    }
    for (std::size_t k = 0; k < levels.size(); ++k)
      if (weight[k] > 0) levels[k] = sum[k] / weight[k];
  };
  std::vector<double> errors(static_cast<std::size_t>(blocks));
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < (round == 0 ? kFirstSteps : kStepsOfLloyd); ++i) step_of_lloyd();
    const std::vector<double> middles = middles_of(levels);
#pragma omp parallel for schedule(static)
    for (std::int64_t b = 0; b < blocks; ++b) {
      constexpr std::size_t kBelow = 12, kAbove = 4;  // codes of E4M3; more than enough powers
      const std::size_t from = first[static_cast<std::size_t>(b)];
      double least = kUnbounded;
      for (std::size_t c = from - std::min(from, kind == LimitScale::e8m0 ? 2 : kBelow);
           c <= std::min(grid.size() - 1, from + (kind == LimitScale::e8m0 ? 1 : kAbove)); ++c) {
        double sum = 0;
        for (std::int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i) {
          const double off = x[i] - grid[c] * levels[level_of(middles, x[i] / grid[c])];
          sum += off * off;
        }
        if (sum < least) {
          least = sum;
          chosen[static_cast<std::size_t>(b)] = c;
        }
      }
      errors[static_cast<std::size_t>(b)] = least;
    }
  }
  return pairwise_sum(blocks, [&](std::int64_t b) { return errors[static_cast<std::size_t>(b)]; }) /
         signal;
}

}  // namespace numemu
