// Random N:M: every group of M keeps N positions, all C(M, N) choices equally likely; as they are,
// or scaled so that the estimate is unbiased.
#pragma once
#include <cstdint>

#include "policies/mask/mask_rule.hpp"

namespace numemu::policies {

/// Masks of a group in the order of their bit strings, the one that keeps the first positions
/// first: `index` in [0, C(M, N)). Bit i: position i is kept. (The combinatorial number system.)
std::uint32_t mask_of_index(const unit::Sparsity&, std::uint32_t index);

/// Any 1 <= N <= M <= 16. Group g has the mask of index floor(r C(M, N) / 2^32), r the 32 bits of
/// its one draw; how likely a mask is differs from 1 / C(M, N) by less than 2^-32.
void keep_random_reference(const unit::Sparsity&, const RandomSource&, const MaskRun&);
/// keep_random_reference() with random bits by vectors.
void keep_random(const unit::Sparsity&, const RandomSource&, const MaskRun&);

/// The masks of keep_random(); what they keep becomes x M / N, rounded to float32 (overflow:
/// infinity), and zeros count as pruned. The expectation of y is x within 2^-32 C(M, N) |x| for the
/// grid of the draws and half an ulp of y.
void random_unbiased(const unit::Sparsity&, const RandomSource&, const MaskRun&);

}  // namespace numemu::policies
