// A rectangle of outputs of a unit that rounds once per group of products, in double lanes.
#pragma once
#include "emu/unit/chain/chain_tile.hpp"

namespace numemu::unit {

struct ExactGroupRule {
  int group = 1;     ///< 1, 2, 4 or 8
  double scale = 1;  ///< a power of two, times the sum of the products
  /// 0: a group's products add up exactly in one double. Else 1.5 * 2^(52 + m): it rounds a product
  /// to a multiple of 2^m, and both the multiples of a group and the rests add up exactly. Groups
  /// of two need no such number: anything but 0.
  double splitter = 0;
};

/// One tile on the calling thread, which must hold a FloatGuard. `tile.k` is a multiple of the
/// group.
void run_exact_group_tile(const ExactGroupRule&, const ChainTile<float, float>& tile);

}  // namespace numemu::unit
