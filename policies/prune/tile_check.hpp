// A mask of a square tile as bits: whether it is N:M along rows and columns, and what it keeps.
#pragma once
#include <array>
#include <cstdint>

#include "policies/prune/tile_costs.hpp"

namespace numemu::policies {

/// Which elements of an M x M tile are kept.
struct TileMask {
  int size = 0;                                    ///< M
  std::array<std::uint32_t, kMostTile> rows = {};  ///< bit j of rows[i]: element (i, j) is kept

  bool operator()(int i, int j) const { return (rows[i] >> j & 1) != 0; }
  bool operator==(const TileMask&) const = default;
};

/// How many elements are kept.
int kept_count(const TileMask&);
/// Every row and every column keeps at most `most`.
bool keeps_at_most(const TileMask&, int most);
/// Every row and every column keeps exactly `count`.
bool keeps_exactly(const TileMask&, int count);

/// Whether a's row-major string of bits is the larger one: the earlier positions are kept.
bool keeps_earlier(const TileMask& a, const TileMask& b);

/// Sum of the costs kept; costs [M, M], of which up to 1024 add up without overflow.
template <class Cost>
Cost kept_sum(const TileMask&, const Cost* costs);

/// From one byte per element (0: pruned), row-major.
TileMask tile_mask(const std::uint8_t* keep, int size);
/// y [M, M] is x where kept and +0 elsewhere, keep [M, M] is 1 and 0; either may be null.
void write_tile(const TileMask&, const float* x, float* y, std::uint8_t* keep);

}  // namespace numemu::policies
