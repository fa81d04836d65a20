// A rectangle of outputs of a unit that sums small groups of products, in float32 lanes.
#pragma once
#include <cstdint>

#include "emu/unit/chain/chain_tile.hpp"

namespace numemu::unit {

/// What happens to the products of a group before C joins.
enum class TreeKind : std::uint8_t {
  pairwise,  ///< rounded, then pairwise sums rounded, to nearest even
  to_odd,    ///< the same, to odd
  fused,     ///< two products added exactly and rounded once
};

struct TreeRule {
  TreeKind kind = TreeKind::pairwise;
  int group = 2;           ///< 2 or 4; `fused`: 2
  bool plus_zero = false;  ///< a product that is zero is +0
  bool flush = false;      ///< tiny results can occur; they become zeros of their sign
};

/// One tile on the calling thread, which must hold a FloatGuard and, for rules that flush and do
/// not round to odd, a FlushGuard. `tile.k` is a multiple of the group.
void run_tree_tile(const TreeRule&, const ChainTile<float, float>& tile);

}  // namespace numemu::unit
