// Pearson's chi-square test that outcomes are equally, or so and so likely.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::stats {

struct ChiSquare {
  double statistic = 0;
  std::int64_t degrees = 0;  ///< of freedom: cells - 1
  double p = 1;              ///< probability of a statistic as large under the null hypothesis
};

/// `counts` of every outcome that can happen, those never seen too, in any order; whole numbers up
/// to one last division. The law of the statistic is approximate: expect at least 5 draws per
/// outcome. One outcome alone gives p = 1. Throws Error without outcomes or draws, for negative
/// counts and for more than 2^31 draws.
ChiSquare uniform_chi_square(const std::vector<std::int64_t>& counts);

/// That outcome i has probability[i]; what they leave of 1 is that of all other outcomes, which
/// were seen `others` times. Every cell is expected at least 5 times (Cochran 1954): outcomes
/// expected fewer times are taken together with the others, and where these are still too few, with
/// the least likely of the rest, the first of equal ones, until they are enough. Which ones depends
/// on the number of draws alone, never on what was seen. No degree of freedom is left (and p = 1,
/// which means nothing) where that takes all of them: then there is no test. An outcome of
/// probability 0 that was seen gives p = 0. Throws Error for lengths that differ, for negative
/// counts and probabilities and without draws.
ChiSquare chi_square(const std::vector<std::int64_t>& counts,
                     const std::vector<double>& probabilities, std::int64_t others = 0);

}  // namespace numemu::stats
