// Exact minimum-variance unbiased N:M pruning: water-filling probabilities, systematic sampling.
#pragma once
#include "policies/mask_rule.hpp"

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
/// The same, group by group.
void mvue_groups_reference(const unit::Sparsity&, const RandomSource&, const MaskRun&);
/// One group under the word r.
void mvue_group(const unit::Sparsity&, const float* x, std::uint32_t r, float* y);

}  // namespace numemu::policies
