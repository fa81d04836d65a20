// Mean and variance, or range, of every channel of a batch: what batch normalisation divides by.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/numerics.hpp"

namespace numemu::net {

/// Statistics of the columns of a matrix, in float64.
struct BatchStatistics {
  std::vector<double> mean;
  /// The mean squared deviation; for the range (C(n) (max - min))^2.
  std::vector<double> variance;
  /// Range only: the first row with the largest and the smallest value of each column.
  std::vector<std::int64_t> largest, smallest;
};

/// Statistics of x [rows, channels], rows >= 2: sums over the fixed tree of net::column_sums, the
/// deviations from the mean in a second pass.
BatchStatistics batch_statistics(const float* x, std::int64_t rows, std::int64_t channels,
                                 NormRule::Statistic);

/// C(n) = 1 / sqrt(2 ln n), n >= 2 (Banner et al. 2018, Scalable Methods for 8-bit Training).
double range_factor(std::int64_t n);

}  // namespace numemu::net
