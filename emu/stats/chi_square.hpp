// Pearson's chi-square test that outcomes are equally, or so and so likely.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::stats {

struct ChiSquare {
  double statistic = 0;
  std::int64_t degrees = 0;  ///< of freedom: outcomes - 1
  double p = 1;              ///< probability of a statistic as large under the null hypothesis
};

/// `counts` of every outcome that can happen, those never seen too, in any order; whole numbers up
/// to one last division. The law of the statistic is approximate: expect at least 5 draws per
/// outcome. One outcome alone gives p = 1. Throws Error without outcomes or draws, for negative
/// counts and for more than 2^31 draws.
ChiSquare uniform_chi_square(const std::vector<std::int64_t>& counts);

/// That outcome i has probability[i]; what they leave of 1 is that of all other outcomes, which
/// were seen `others` times. Outcomes expected fewer than 5 times are taken together with those.
/// Throws Error for lengths that differ and without draws.
ChiSquare chi_square(const std::vector<std::int64_t>& counts,
                     const std::vector<double>& probabilities, std::int64_t others = 0);

/// Upper tail of the chi-squared law; degrees > 0.
double chi_square_tail(double statistic, double degrees);

}  // namespace numemu::stats
