// Holm's step-down procedure: many tests at one family-wise level.
#pragma once
#include <vector>

namespace numemu::stats {

/// For each p-value whether its null hypothesis is rejected, the probability of any wrong rejection
/// being at most `level` (Holm 1979). NaN is never rejected.
std::vector<bool> holm(const std::vector<double>& p_values, double level = 0.05);

}  // namespace numemu::stats
