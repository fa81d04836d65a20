// Exact minimum-variance unbiased N:M pruning: water-filling probabilities, systematic sampling;
// 1:2 and 2:4 by vectors.
#pragma once
#include <cstdint>

#include "policies/mask/mask_rule.hpp"

namespace numemu::policies {

/// Any 1 <= N <= M <= 16; one word r a group, RandomSource::bits(g, 32) for group g.
///
/// Water-filling: while N' a_i >= S', with N' the number left to keep and S' the sum of the
/// magnitudes left (float64, ascending index), element i is kept as it is and leaves; several leave
/// at once. Each of the rest is kept with probability N' a_i / S' and stands then for S' / N',
/// rounded to float32 once. For 2:4 that is S / 2, or the largest and the sum of the others.
///
/// Systematic sampling: the cumulative probabilities of the rest, in index order, are rounded to
/// multiples C_k of 2^-32 with C = N' at the end and steps of at most 1; element k is kept where
/// one of r 2^-32, r 2^-32 + 1... lies in [C_{k-1}, C_k). So N elements are kept, or all that are
/// not zero, always, and the expectation of y is x within 2^-32 S' / N' and half an ulp of y. What
/// lies 2^-53 below the N largest of a group is pruned. Sums do not overflow; a y beyond float32 is
/// infinite. Chmiel et al., ICLR 2023, section 4.2; Madow 1949.
void mvue_groups(const unit::Sparsity&, const RandomSource&, const MaskRun&);
/// mvue_groups(), group by group.
void mvue_groups_reference(const unit::Sparsity&, const RandomSource&, const MaskRun&);
/// One group under the word r.
void mvue_group(const unit::Sparsity&, const float* x, std::uint32_t r, float* y);

/// Pairs (x1, x2) with a_i = |x_i| and S = a1 + a2 rounded to float32: (sign(x1) S, 0) where
/// u S < a1, compared exactly with u = r 2^-32, else (0, sign(x2) S). r is the word of the pair,
/// RandomSource::bits(i, 32) for pair i.
///
/// The expectation of y is x within 2^-32 S for the grid of u and half an ulp of S for its
/// rounding; a zero is never kept. Subnormal sums are exact. Where S overflows, the comparison is
/// made with all numbers halved and infinity is kept. Chmiel et al., ICLR 2023, section 4.1.
void mvue_pairs(const RandomSource&, const MaskRun&);
/// mvue_pairs(), pair by pair in integers.
void mvue_pairs_reference(const RandomSource&, const MaskRun&);
/// One pair under the word r.
void mvue_pair(const float* x, std::uint32_t r, float* y);

/// Groups of 4 under one word each, as mvue_group() prunes them to 2:4; returns how many were done
/// from the first on (whole vectors), the rest is the caller's. y may be x.
std::int64_t mvue_quads(const float* x, const std::uint32_t* words, std::int64_t groups, float* y);

}  // namespace numemu::policies
