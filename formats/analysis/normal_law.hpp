// The standard normal law Z: portable functions for what reaches a mask, threshold, scale or draw,
// and functions of the C library for what is only printed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/random.hpp"

namespace numemu::normal {

// From IEEE operations alone: the same bits everywhere. They serve the thresholds of pruning and
// drawn samples, so that another library here would change results.

/// exp(-z^2/2) / sqrt(2 pi); 0 beyond |z| = 37, where it is below 1e-297.
double density(double z);
/// P(Z <= z), relative error below 1e-13 + 1e-16 z^2 in the lower tail too; 0 below -37.
double probability(double z);
/// P(|Z| < t), E[|Z|; |Z| < t] and E[Z^2; |Z| < t] for t >= 0, free of cancellation.
double within(double t);
double first_moment_within(double t);
double second_moment_within(double t);
/// z with P(Z <= z) = u, 0 < u < 1, relative error about 1e-15 (Wichura 1988, algorithm AS 241,
/// PPND16).
double quantile(double u);
/// Number i of a sample: the quantile at the middle of the step of its random bits.
double draw(const RandomSource&, std::uint64_t i, int bits = 32);
/// Numbers 0 to n - 1 of it, rounded to float32.
std::vector<float> sample(const RandomSource&, std::size_t n, int bits = 32);

// From the C library's erf and erfc, exact to a few ulp: for predictions, tests and other figures.

/// The density; 0 at infinity.
double pdf(double z);
/// P(Z <= z), in the lower tail too: P(Z > z) is cdf(-z).
double cdf(double z);
/// P(a <= Z <= b) for a <= b, from the tail where both numbers are small.
double between(double a, double b);
/// exp(t^2) erfc(t) for t >= 0, without overflow.
double scaled_erfc(double t);

}  // namespace numemu::normal
