// Means with their standard error, and sums of squares, from sums over fixed pairwise trees.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "formats/portable/pairwise.hpp"

namespace numemu::stats {

/// pairwise_sum of x[i]^2, i in [0, n).
double sum_of_squares(std::int64_t n, const float* x);

/// pairwise_sum of (x[i] - y[i])^2, i in [0, n), the differences in float64.
double sum_of_squared_differences(std::int64_t n, const float* x, const float* y);

/// Of independent numbers. A single one has no error: it is NaN.
struct Mean {
  double value = 0;
  double error = std::numeric_limits<double>::quiet_NaN();      ///< of the mean
  double deviation = std::numeric_limits<double>::quiet_NaN();  ///< of the numbers
};

/// Of term(i), i in [0, n), n > 0; each is read twice.
template <class Term>
Mean mean_of(std::int64_t n, const Term& term) {
  const auto count = static_cast<double>(n);
  Mean mean;
  mean.value = pairwise_sum(n, term) / count;
  if (n < 2) return mean;
  const double squares = pairwise_sum(
      n, [&](std::int64_t i) { return (term(i) - mean.value) * (term(i) - mean.value); });
  mean.deviation = std::sqrt(squares / (count - 1));
  mean.error = std::sqrt(squares / (count - 1) / count);
  return mean;
}
inline Mean mean_of(const std::vector<double>& numbers) {
  return mean_of(std::ssize(numbers),
                 [&](std::int64_t i) { return numbers[static_cast<std::size_t>(i)]; });
}

}  // namespace numemu::stats
