// Kinds of masks of a tile: those that permuting rows and columns turns into each other.
#pragma once
#include <cstdint>

namespace numemu::experiments {

/// The largest tile whose kinds are distinguished: 8 x 8, one word.
inline constexpr int kMostKindTile = 8;

/// Where the elements of a tile are independent and equally distributed, without ties, the best
/// masks of one kind are equally likely: exchanging rows or columns of the tile does the same to
/// its mask. So the entropy of masks is that of kinds and the mean of log2 of their size.
struct MaskKind {
  std::uint64_t canonical = 0;  ///< the same for masks of one kind, and for no others
  std::int64_t size = 0;        ///< masks of this kind
};

/// Of a mask of m x m elements, row-major, element 0 in the lowest bit. Throws Error unless
/// 1 <= m <= kMostKindTile.
MaskKind kind_of(std::uint64_t mask, int m);

}  // namespace numemu::experiments
