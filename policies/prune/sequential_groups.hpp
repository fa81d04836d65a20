// Sequential N:M: the M - N elements that a group loses are neighbours.
#pragma once
#include <cstdint>

#include "policies/mask_rule.hpp"

namespace numemu::policies {

/// Bit i: position i is kept. Of the N + 1 windows of M - N neighbours the one with the smallest
/// sum of magnitudes is pruned; of equal ones the last, so that the earliest positions are kept.
///
/// Sums are of float64, ascending. An infinity counts as 2^160 in them and a NaN as 2^200: each is
/// more than all that ranks below it in a group, and beside it nothing below counts.
std::uint32_t sequential_of_group(const unit::Sparsity&, const float* x);

/// Any 1 <= N <= M <= 16; kept elements keep their bits, pruned ones become +0. y may be x.
void keep_sequential(const unit::Sparsity&, const MaskRun&);

}  // namespace numemu::policies
