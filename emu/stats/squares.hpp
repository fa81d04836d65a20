// Sums of squares of float32 arrays in float64, over the tree of pairwise_sum.
#pragma once
#include <cstdint>

namespace numemu::stats {

/// pairwise_sum of x[i]^2, i in [0, n).
double sum_of_squares(std::int64_t n, const float* x);

/// pairwise_sum of (x[i] - y[i])^2, i in [0, n), the differences in float64.
double sum_of_squared_differences(std::int64_t n, const float* x, const float* y);

}  // namespace numemu::stats
