// Two passes over the batch: means, then squared deviations or extremes.
#include "emu/net/ops/batch_statistics.hpp"

#include <cmath>
#include <numbers>

#include "emu/net/ops/float64_sums.hpp"
#include "emu/net/sums.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/vector_functions.hpp"

namespace numemu::net {
namespace {

// rows_of[channel] = the first row whose value is before(x, best so far) of all; blocks of rows in
// parallel, then the blocks in order.
template <class Before>
std::vector<std::int64_t> first_extremes(const float* x, std::int64_t rows, std::int64_t channels,
                                         const Before& before) {
  constexpr std::int64_t kBlock = 256;
  const std::int64_t blocks = (rows + kBlock - 1) / kBlock;
  std::vector<std::int64_t> found(static_cast<std::size_t>(blocks * channels));
  for_each_row(blocks, kBlock * channels, [&](std::int64_t block) {
    std::int64_t* const best = found.data() + block * channels;
    std::fill_n(best, channels, block * kBlock);
    for (std::int64_t r = block * kBlock; r < std::min(rows, (block + 1) * kBlock); ++r) {
      for (std::int64_t c = 0; c < channels; ++c) {
        if (before(x[r * channels + c], x[best[c] * channels + c])) best[c] = r;
      }
    }
  });
  for (std::int64_t block = 1; block < blocks; ++block) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t r = found[block * channels + c];
      if (before(x[r * channels + c], x[found[c] * channels + c])) found[c] = r;
    }
  }
  found.resize(static_cast<std::size_t>(channels));
  return found;
}

// E[max - min] of n standard normal values: the integral of 1 - Phi(z)^n - (1 - Phi(z))^n over the
// line (Tippett 1925), twice the one over z > 0. The trapezoidal rule converges exponentially: for
// n up to 1e6 it is exact to 1e-12 with these nodes.
double expected_range(std::int64_t n) {
  constexpr double kStep = 0x1p-4;
  constexpr int kNodes = 14 * 16;  // beyond z = 14 the integrand is below n 1e-44
  struct Logarithms {
    double inside, outside;  // of Phi(z) and 1 - Phi(z)
  };
  static const std::vector<Logarithms> nodes = [] {
    std::vector<Logarithms> all;
    for (int i = 0; i < kNodes; ++i) {
      const double q = normal::probability(-i * kStep);
      // ln(1 - q), by its series where 1 - q would lose digits of q.
      const double inside =
          q < 0x1p-13 ? -q * (1 + q * (0.5 + q * (1.0 / 3 + q * 0.25))) : portable::log(1 - q);
      all.push_back({inside, portable::log(q)});
    }
    return all;
  }();
  const auto power = [n](double logarithm) {
    const double x = static_cast<double>(n) * logarithm;
    return x < -700 ? 0 : portable::exp(x);
  };
  double sum = 0;
  for (int i = kNodes - 1; i >= 0; --i) {
    const double f = 1 - power(nodes[i].inside) - power(nodes[i].outside);
    sum += i == 0 ? f : 2 * f;
  }
  return kStep * sum;
}

}  // namespace

double range_factor(NormRule::Constant constant, std::int64_t n) {
  if (constant == NormRule::Constant::exact) return 1 / expected_range(n);
  const double published = 1 / std::sqrt(2 * core::log_positive(static_cast<double>(n)));
  if (constant == NormRule::Constant::published) return published;
  return 0.5 * 0.35 * (1 + std::sqrt(std::numbers::pi * 2 * std::numbers::ln2)) * published;
}

BatchStatistics batch_statistics(const float* x, std::int64_t rows, std::int64_t channels,
                                 const NormRule& rule) {
  const auto count = static_cast<double>(rows);
  BatchStatistics result;
  result.mean = column_sums(x, rows, channels);
  for (double& mean : result.mean) mean /= count;
  const auto mean_deviations = [&](const auto& term) {
    const double* const means = result.mean.data();
    result.variance = column_tree(rows, channels, [=](std::int64_t r, double* sums) {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) sums[c] += term(x[r * channels + c] - means[c]);
    });
    for (double& variance : result.variance) variance /= count;
  };
  if (rule.statistic == NormRule::Statistic::variance) {
    mean_deviations([](double d) { return d * d; });
    return result;
  }
  if (rule.statistic == NormRule::Statistic::shift) {
    mean_deviations([](double d) { return d * core::power_of_two(d); });
    return result;
  }
  const std::int64_t chunks = rule.chunks, length = rows / chunks;
  const double short_share = range_factor(rule.constant, length) / rule.chunks;
  const double long_share =
      rows % chunks == 0 ? short_share : range_factor(rule.constant, length + 1) / rule.chunks;
  result.variance.resize(static_cast<std::size_t>(channels));
  for (std::int64_t i = 0; i < chunks; ++i) {
    const std::int64_t first = i * rows / chunks, n = (i + 1) * rows / chunks - first;
    const float* const chunk = x + first * channels;
    const double share = n == length ? short_share : long_share;
    const auto largest = first_extremes(chunk, n, channels, [](float a, float b) { return a > b; });
    const auto smallest =
        first_extremes(chunk, n, channels, [](float a, float b) { return a < b; });
    for (std::int64_t c = 0; c < channels; ++c) {
      const double range =
          static_cast<double>(chunk[largest[c] * channels + c]) - chunk[smallest[c] * channels + c];
      result.variance[c] += share * range;
      result.largest.push_back(first + largest[c]);
      result.smallest.push_back(first + smallest[c]);
    }
    result.share.push_back(share);
  }
  for (double& scale : result.variance) scale *= scale;
  return result;
}

}  // namespace numemu::net
