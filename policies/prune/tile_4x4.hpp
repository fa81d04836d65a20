// The transposable 2:4 mask of 4 x 4 tiles that keeps the largest sum of magnitudes: all 90 masks.
#pragma once
#include <cstdint>

namespace numemu::policies {

/// A mask of a 4 x 4 tile: bit 15 is element (0, 0), bit 0 element (3, 3); the larger number keeps
/// the earlier positions.
using Mask4x4 = std::uint16_t;

/// The mask with two kept in every row and column whose sum of magnitudes is largest as a real
/// number, of equal sums the largest Mask4x4; NaN and infinities count alike and more than all
/// finite elements together. The reference: 90 sums of integers (tile_costs.hpp). x [4, 4].
Mask4x4 best_4x4(const float* x);

/// The same masks, many tiles at a time. x [count, 4, 4]; y is x where kept and +0 elsewhere, keep
/// is 1 and 0; either may be null.
void keep_4x4(const float* x, std::int64_t count, float* y, std::uint8_t* keep);

}  // namespace numemu::policies
