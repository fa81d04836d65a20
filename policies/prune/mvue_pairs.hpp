// Minimum-variance unbiased 1:2 pruning: one of two neighbours is kept and represents both.
#pragma once
#include "policies/mask_rule.hpp"

namespace numemu::policies {

/// Pairs (x1, x2) with a_i = |x_i| and S = a1 + a2 rounded to float32: (sign(x1) S, 0) where
/// u S < a1, compared exactly with u = r 2^-32, else (0, sign(x2) S). r is the word of the pair,
/// RandomSource::bits(i, 32) for pair i.
///
/// The expectation of y is x within 2^-32 S for the grid of u and half an ulp of S for its
/// rounding; a zero is never kept. Subnormal sums are exact. Where S overflows, the comparison is
/// made with all numbers halved and infinity is kept. Chmiel et al., ICLR 2023, section 4.1.
void mvue_pairs(const RandomSource&, const MaskRun&);
/// The same, pair by pair in integers.
void mvue_pairs_reference(const RandomSource&, const MaskRun&);
/// One pair under the word r.
void mvue_pair(const float* x, std::uint32_t r, float* y);

}  // namespace numemu::policies
