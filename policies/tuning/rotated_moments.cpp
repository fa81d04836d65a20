// Cold: a negligible share of any run (docs/build.md).
#include "policies/tuning/rotated_moments.hpp"

#include <algorithm>
#include <cmath>

#include "emu/net/math.hpp"
#include "emu/stats/squares.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::policies {
namespace {

double mean_of(std::int64_t n, const auto& term) {
  return n == 0 ? 0 : pairwise_sum(n, term) / static_cast<double>(n);
}

double fourth(float x) {
  const double square = double{x} * double{x};
  return square * square;
}

}  // namespace

double RawMoments::peak() const { return square > 0 ? largest / std::sqrt(square) : 0; }

RawMoments raw_moments(const float* x, std::int64_t n) {
  RawMoments moments;
  moments.square = n == 0 ? 0 : stats::sum_of_squares(n, x) / static_cast<double>(n);
  moments.fourth = mean_of(n, [&](std::int64_t i) { return fourth(x[i]); });
  for (std::int64_t i = 0; i < n; ++i)
    moments.largest = std::max(moments.largest, std::abs(double{x[i]}));
  return moments;
}

RawMoments rotated_moments(const float* x, std::int64_t n, std::int64_t block) {
  const auto b = static_cast<double>(block);
  RawMoments moments;
  moments.square =
      mean_of(n / block,
              [&](std::int64_t i) { return stats::sum_of_squares(block, x + i * block); }) /
      b;
  moments.fourth = mean_of(n / block, [&](std::int64_t i) {
    const float* const line = x + i * block;
    const double s2 = stats::sum_of_squares(block, line);
    const double s4 = pairwise_sum(block, [&](std::int64_t k) { return fourth(line[k]); });
    return (3 * s2 * s2 - 2 * s4) / (b * b);
  });
  for (std::int64_t i = 0; i < n; i += block) {
    const double sum =
        pairwise_sum(block, [&](std::int64_t k) { return std::abs(double{x[i + k]}); });
    moments.largest = std::max(moments.largest, sum / std::sqrt(b));
  }
  return moments;
}

double rotated_share_above(const float* x, std::int64_t n, std::int64_t block, double threshold) {
  const auto b = static_cast<double>(block);
  return mean_of(n / block, [&](std::int64_t i) {
    const double deviation = std::sqrt(stats::sum_of_squares(block, x + i * block) / b);
    if (deviation == 0) return 0.0;
    return 2 * double{net::normal_cdf(static_cast<float>(-threshold / deviation))};
  });
}

}  // namespace numemu::policies
