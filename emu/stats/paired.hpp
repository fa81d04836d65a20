// The interval of a mean difference between two treatments of the same seeds, and which of several
// tests stand together.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::stats {

/// A mean and its 95 % interval by Student's t law with n - 1 degrees of freedom.
struct PairedInterval {
  double mean = 0, low = 0, high = 0;
  std::int64_t n = 0;
  std::int64_t left_out = 0;  ///< of runs that diverged: differences that are NaN, not among the n
};

/// Of one difference per seed; those that are NaN are left out, and the mean is NaN where all are.
/// A single one has no spread, and few that are all equal show none, which is no proof that there
/// is none: the interval is infinite. Throws Error without differences.
PairedInterval paired_interval(const std::vector<double>& differences);
/// Of a[i] - b[i], which is 0 where both are equal but for their rounding. Throws Error for lengths
/// that differ.
PairedInterval paired_interval(const std::vector<double>& a, const std::vector<double>& b);

/// For each p-value whether its null hypothesis is rejected, the probability of any wrong rejection
/// being at most `level` (Holm 1979). NaN is never rejected.
std::vector<bool> holm(const std::vector<double>& p_values, double level = 0.05);

}  // namespace numemu::stats
