// Mean and variance, or range, of every channel of a batch: what batch normalisation divides by.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/numerics.hpp"

namespace numemu::net {

/// Statistics of the columns of a matrix, in float64.
struct BatchStatistics {
  std::vector<double> mean;
  /// The mean squared deviation; for the range the square of the mean of C(n) (max - min) over the
  /// chunks; for shifts the mean of d AP2(d), d the deviation (core::power_of_two()).
  std::vector<double> variance;
  /// Range only, [chunks, channels]: the first row with the largest and the smallest value of each
  /// column in each chunk.
  std::vector<std::int64_t> largest, smallest;
  std::vector<double> share;  ///< range only, [chunks]: C(n) / chunks
};

/// Statistics of x [rows, channels], rows >= 2: sums over the fixed tree of net::column_sums, the
/// deviations from the mean in a second pass. Chunk i of k is rows [i rows / k, (i + 1) rows / k),
/// at least 2.
BatchStatistics batch_statistics(const float* x, std::int64_t rows, std::int64_t channels,
                                 const NormRule&);

/// C(n), n >= 2: C(n) times the range of n normal values estimates their standard deviation.
/// - exact: 1 / d2(n), d2(n) = E[range] of n standard normal values; relative error below 1e-11.
/// - published: 1 / sqrt(2 ln n) (Banner et al. 2018, Scalable Methods for 8-bit Training), which
///   tends to twice the deviation.
/// - repository: (0.35 / 2) (1 + sqrt(pi ln 4)) / sqrt(2 ln n), of the published code; 2 to 33 %
///   below the deviation.
double range_factor(NormRule::Constant, std::int64_t n);

}  // namespace numemu::net
