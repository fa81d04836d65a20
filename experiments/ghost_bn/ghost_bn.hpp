// Closed forms of ghost batches: the noise of their statistics, and laws of growing distances.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::experiments::ghost_bn {

/// Of n standard normal numbers, n >= 4: the standard deviation of their mean and of their mean
/// squared deviation v, and E[1 / sqrt(v)] = sqrt(n / 2) Gamma(n / 2 - 1) / Gamma((n - 1) / 2).
double mean_noise(std::int64_t n);
double variance_noise(std::int64_t n);
double mean_inverse_deviation(std::int64_t n);
/// E[v] under the same law: (n - 1) / n.
double mean_variance(std::int64_t n);

/// Least squares of y at x > 0: shares of the variance of y that a + b ln x and c x^p explain, both
/// with two constants, and p in [0, 2].
struct Growth {
  double logarithm = 0, power = 0;
  double exponent = 0;
};
/// NaN for fewer than three points or equal y.
Growth growth(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace numemu::experiments::ghost_bn
