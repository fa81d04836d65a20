// Ranks of noisy figures: what share of the marked ones is among the largest, and how ranks agree
// with those of exact figures.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/stats/rounded_dots.hpp"

namespace numemu::stats {

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
