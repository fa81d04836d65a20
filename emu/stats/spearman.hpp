// Spearman's rank correlation with mid-ranks for ties, two intervals of it, and what ranks of noisy
// figures have in common with those of exact ones.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/stats/interval.hpp"
#include "emu/stats/rounded_dots.hpp"

namespace numemu::stats {

/// Ranks 1 to n in ascending order; equal values share the mean of their ranks. No value is NaN.
std::vector<double> mid_ranks(const std::vector<double>& values);

/// The correlation of the mid-ranks (Spearman 1904), in [-1, 1]; the last bit of it is a function
/// of the ranks alone. NaN where it is not defined: fewer than two pairs, or one side constant.
/// Throws Error for lengths that differ and for NaN among the values.
double spearman(const std::vector<double>& x, const std::vector<double>& y);

/// 95 % of a correlation rho of n independent pairs by Fisher's z = artanh(rho), whose standard
/// error is sqrt((1 + rho^2 / 2) / (n - 3)) (Bonett and Wright 2000). z is taken at most half a
/// step from the ends, at |rho| = 1 - 6 / (n^3 - n), where the next order of n pairs has 1 - 12 /
/// (n^3 - n): full agreement of a sample is not proof. Contains rho; [-1, 1] below 4 pairs and
/// for NaN. |rho| <= 1, else Error.
Interval spearman_interval(double rho, std::int64_t n);

/// Bootstrap percentile interval (emu/stats/resampling.hpp) over the pairs, which are what was
/// sampled; [-1, 1] where no resample defines the correlation. For more than a few dozen pairs away
/// from the ends: pairs that agree wholly agree in every resample, so that its width is zero there.
Interval spearman_interval(const std::vector<double>& x, const std::vector<double>& y,
                           std::uint64_t seed, std::int64_t resamples = 9999);

/// Of figures of samples under normal laws, independent of each other: the share of the marked ones
/// that is expected among the `top` largest. Above which figure these lie is where as many are
/// expected above it.
double expected_share(const std::vector<Moments>&, const std::vector<std::uint8_t>& marked,
                      std::int64_t top);
/// The expected rank correlation with exact values that all differ.
double expected_correlation(const std::vector<double>& exact, const std::vector<Moments>&);

/// The share of the marked ones among the `top` largest; of equal figures the first.
double share_of_top(const std::vector<double>& figures, const std::vector<std::uint8_t>& marked,
                    std::int64_t top);

}  // namespace numemu::stats
