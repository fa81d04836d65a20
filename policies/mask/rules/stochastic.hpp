// Pruning below a threshold, element by element: by chance without bias, or to zero.
#pragma once
#include <cstdint>

#include "formats/random.hpp"
#include "policies/mask/mask_rule.hpp"

namespace numemu::policies {

// Stochastic pruning (Ye et al.; Chmiel et al., ICLR 2021): |g| < tau becomes sign(g) tau where
// u tau < |g|, else +0; everything else stays, NaN and infinity too. Hard pruning: |g| < tau
// becomes +0.
//
// tau is `run.threshold` rounded to float32 once (threshold_value()). u = r 2^-32 with the
// element's 32 random bits r, and the comparison is the exact one of integers,
//   r * (significand of tau) * 2^(exponent of tau) < (significand of g) * 2^(exponent of g + 32),
// so that P(kept) = ceil(2^32 |g| / tau) 2^-32: the mean exceeds g in size by less than 2^-32 tau.
// A zero is never kept. Without a threshold (tau not finite or not positive) everything is.
//
// `run.y` may be `run.x`; `run.y` or `run.keep` may be null.

/// The float32 nearest to the threshold; 0 where nothing is pruned: a threshold that is not
/// positive or not finite, or leaves the range of float32.
float threshold_value(double threshold);

/// Whether u tau < |g|, for the bits of magnitudes of float32, |g| < tau.
bool is_raised(std::uint32_t random, std::uint32_t magnitude, std::uint32_t tau);

void prune_stochastic(const RandomSource& random, const MaskRun& run);
/// The specification: one element after the other.
void prune_stochastic_reference(const RandomSource& random, const MaskRun& run);

void prune_hard(const MaskRun& run);

/// Expected sum of (y - x)^2 of stochastic pruning: the sum of |g| (tau - |g|) over |g| < tau.
double stochastic_error(const float* x, std::int64_t n, double threshold);
/// Sum of (y - x)^2 of hard pruning: that of g^2 over |g| < tau.
double hard_error(const float* x, std::int64_t n, double threshold);

/// Throws Error unless the policy's share is inside (0, 1).
void require_share(const MaskPolicy&);

}  // namespace numemu::policies
