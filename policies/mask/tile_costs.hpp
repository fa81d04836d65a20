// The magnitudes of a square tile as integers of one common unit, so that sums of them are exact.
#pragma once
#include <cstdint>

namespace numemu::policies {

__extension__ typedef __int128 Wide;

/// The largest M of an M x M tile.
inline constexpr int kMostTile = 32;

/// The unit of the integers of a tile, and how many bits they need.
///
/// A float32 magnitude is c 2^e with c < 2^24, so the magnitudes of a tile are multiples of the
/// lowest set bit among them: exact in 64 bits where the top of the largest is at most 52 bits
/// above that, in 128 bits up to 116 bits above (10 fewer beside an element that is not a finite
/// number). Where it is more, magnitudes are rounded down to what 128 bits hold.
struct TileUnit {
  int lowest = 0;      ///< the unit is 2^lowest
  bool narrow = true;  ///< 64 bits are enough for what solvers add up
  bool exact = true;   ///< no magnitude was cut
};

/// Of `elements` (at most 1024) magnitudes.
TileUnit tile_unit(const float* x, int elements);

/// costs[i] = |x[i]| in that unit; NaN and infinities count as one more than all finite elements
/// together. Cost is std::int64_t (only where the unit is narrow) or Wide.
template <class Cost>
void tile_costs(const TileUnit&, const float* x, int elements, Cost* costs);

}  // namespace numemu::policies
