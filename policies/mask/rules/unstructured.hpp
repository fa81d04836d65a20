// Unstructured pruning by magnitude: the largest elements of a whole tensor are kept.
#pragma once
#include <cstdint>

#include "policies/mask/mask_rule.hpp"

namespace numemu::policies {

/// floor(share n + 1/2), the product in float64.
std::int64_t kept_of(double share, std::int64_t n);

/// What is kept: every element whose magnitude_bits() are above `magnitude`, and those equal to it
/// in front of position `end`. The default keeps nothing: no magnitude has more bits.
struct Cut {
  std::uint32_t magnitude = 0x7fffffffU;
  std::int64_t end = 0;
  bool keeps(std::uint32_t bits, std::int64_t i) const {
    return bits > magnitude || (bits == magnitude && i < end);
  }
};

/// The cut that keeps the `kept` largest of x[0..n), 0 <= kept <= n; ties go to the earlier
/// element. Three counts of the bits of the magnitudes, 11, 10, and 10 at a time: O(n).
Cut find_cut(const float* x, std::int64_t n, std::int64_t kept);

/// Keeps kept_of(share, count) elements of the run, which is the whole tensor; kept elements keep
/// their bits, pruned ones become +0. y may be x.
void keep_share(double share, const MaskRun&);

}  // namespace numemu::policies
