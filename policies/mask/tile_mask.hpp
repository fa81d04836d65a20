// A mask of a square tile as bits: whether it is N:M along rows and columns, what it keeps, and
// what the rules over tiles share, magnitudes as integers of one unit among it.
#pragma once
#include <array>
#include <cstdint>

#include "policies/mask/mask_rule.hpp"

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

/// Sum of the costs kept; costs [M, M], of which up to 1024 add up without overflow.
template <class Cost>
Cost kept_sum(const TileMask&, const Cost* costs);

/// From one byte per element (0: pruned), row-major.
TileMask tile_mask(const std::uint8_t* keep, int size);
/// y [M, M] is x where kept and +0 elsewhere, keep [M, M] is 1 and 0; either may be null.
void write_tile(const TileMask&, const float* x, float* y, std::uint8_t* keep);

/// Writes every tile of the run by choose(x of the tile) -> TileMask.
template <class Choose>
void write_tiles(const MaskPolicy& policy, const MaskRun& run, Choose&& choose) {
  const std::int64_t size = policy.pattern.group, elements = size * size;
  for (std::int64_t t = 0; t < run.count; ++t) {
    const std::int64_t at = t * elements;
    write_tile(choose(run.x + at), run.x + at, run.y == nullptr ? nullptr : run.y + at,
               run.keep == nullptr ? nullptr : run.keep + at);
  }
}

/// Sum of the squares of what a mask prunes of x [size, size], row-major in float64.
double pruned_squares(const TileMask&, const float* x);

/// MaskRule::prune and MaskRule::error of a rule that chooses a tile's mask from x, M and N.
template <TileMask (*Choose)(const float*, int, int)>
void prune_tiles(const MaskPolicy& policy, const RandomSource&, const MaskRun& run) {
  write_tiles(policy, run,
              [&](const float* x) { return Choose(x, policy.pattern.group, policy.pattern.kept); });
}
template <TileMask (*Choose)(const float*, int, int)>
double tile_error(const MaskPolicy& policy, const float* x, std::int64_t, double) {
  return pruned_squares(Choose(x, policy.pattern.group, policy.pattern.kept), x);
}

/// Throws Error unless single elements are kept, N >= 1 of every M <= 32.
void require_tile(const char* rule, const unit::Pattern&);

}  // namespace numemu::policies
