// Approximately minimum-variance unbiased 2:4 pruning: two draws in turn, no sorting.
#pragma once
#include "policies/mask/mask_rule.hpp"

namespace numemu::policies {

/// Groups of 4 with magnitudes a_i and sum S; two words a group, those of draw 0 and draw 1. A
/// first element i is drawn with probability a_i / S, a second one with a_j / (S - a_i) from the
/// rest; so element k is kept with p_k = a_k / S (1 + sum over i != k of a_i / (S - a_i)), and
/// becomes x_k / p_k. Groups with at most two elements that are not zero stay as they are.
///
/// All in float32, the order of operations fixed (mvue_approx.cpp), without cancellation: S - a_i
/// is summed from the other three. Draws are compared exactly with the cumulative sums (u = r
/// 2^-32), which are exact where subnormal. Where the largest magnitude is 2^124 or more, the group
/// is scaled by 2^-64 first. The expectation of y is x within 2^-20 |x| + 2^-22 S (rounding of p_k,
/// and of the sums that are compared) while no element is 2^128 times the sum of the others. Chmiel
/// et al., ICLR 2023, section 4.3.
void mvue_approx(const RandomSource&, const MaskRun&);
/// mvue_approx(), group by group.
void mvue_approx_reference(const RandomSource&, const MaskRun&);
/// One group under the words r1 and r2.
void mvue_approx_group(const float* x, std::uint32_t r1, std::uint32_t r2, float* y);

}  // namespace numemu::policies
