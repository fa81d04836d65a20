// Spearman's rank correlation with mid-ranks for ties, and its bootstrap interval.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/stats/interval.hpp"

namespace numemu::stats {

/// Ranks 1 to n in ascending order; equal values share the mean of their ranks. No value is NaN.
std::vector<double> mid_ranks(const std::vector<double>& values);

/// The correlation of the mid-ranks (Spearman 1904), in [-1, 1]; the last bit of it is a function
/// of the ranks alone. NaN where it is not defined: fewer than two pairs, or one side constant.
/// Throws Error for lengths that differ and for NaN among the values.
double spearman(const std::vector<double>& x, const std::vector<double>& y);

/// Bootstrap percentile interval (emu/stats/bootstrap.hpp) over the pairs, which are what was
/// sampled; [-1, 1] where no resample defines the correlation.
Interval spearman_interval(const std::vector<double>& x, const std::vector<double>& y,
                           std::uint64_t seed, std::int64_t resamples = 9999);

}  // namespace numemu::stats
