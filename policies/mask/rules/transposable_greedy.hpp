// The two greedy transposable N:M masks of an M x M tile: keep the heaviest, prune the lightest.
#pragma once
#include "policies/mask/tile_mask.hpp"

namespace numemu::policies {

/// From the heaviest element to the lightest: kept while its row and its column keep fewer than
/// `kept`. At least half the largest sum that any mask with at most `kept` per row and column
/// keeps, because no element can be added. Rows and columns may keep fewer. x [size, size];
/// of equal magnitudes the earlier is the heavier; NaN and infinities weigh alike, more than all
/// else.
TileMask keep_heaviest(const float* x, int size, int kept);

/// From the lightest element to the heaviest: pruned while its row or its column has fewer than
/// size - kept pruned (Hubara et al., arXiv 2102.08124, algorithm 1). Prunes at most twice the sum
/// that the best mask prunes; rows and columns may keep fewer than `kept`. Ties as above.
TileMask prune_lightest(const float* x, int size, int kept);

/// Adds elements to a mask that keeps at most `kept` of every row and column, one row and one
/// column that keep fewer at a time: directly, or by keeping (i, c) and (r, j) in place of (r, c).
/// Takes the largest gain of the sum of costs [size, size] (of equal ones the smallest i, j, c, r)
/// and stops where the largest would lose: with zeros to spare every row and column gets `kept`.
template <class Cost>
TileMask fill_tile(TileMask mask, const Cost* costs, int kept);

/// keep_heaviest(), filled.
TileMask keep_heaviest_filled(const float* x, int size, int kept);

}  // namespace numemu::policies
