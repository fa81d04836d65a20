// Greedy N:M: every group of M neighbours keeps its N largest magnitudes.
#pragma once
#include <cstdint>

#include "policies/mask/mask_rule.hpp"

namespace numemu::policies {

/// Bit i: x[i] is among the `kept` largest magnitudes of x[0..group). Ties go to the earlier
/// element; the order is that of magnitude_bits(), so that NaN > infinity > finite.
std::uint32_t largest_of_group(const unit::Sparsity&, const float* x);

/// Any 1 <= N <= M <= 16; kept elements keep their bits, pruned ones become +0. y may be x.
void keep_largest_reference(const unit::Sparsity&, const MaskRun&);
/// keep_largest_reference() by vectors.
void keep_largest(const unit::Sparsity&, const MaskRun&);

}  // namespace numemu::policies
