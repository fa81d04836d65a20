// Random unbiased N:M pruning: every mask is equally likely, and what is kept is scaled by M / N.
#pragma once
#include "policies/mask_rule.hpp"

namespace numemu::policies {

/// The masks of keep_random() (random_groups.hpp); what they keep becomes x M / N, rounded to
/// float32 (overflow: infinity), and zeros count as pruned. The expectation of y is x within 2^-32
/// C(M, N) |x| for the grid of the draws and half an ulp of y.
void random_unbiased(const unit::Sparsity&, const RandomSource&, const MaskRun&);

}  // namespace numemu::policies
