// Shared by the rules over tiles: their loop, their error, and the supported patterns.
#pragma once
#include <cstdint>

#include "policies/mask_rule.hpp"
#include "policies/prune/tile_check.hpp"

namespace numemu::policies {

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
