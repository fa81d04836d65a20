// The transposable N:M mask of an M x M tile that keeps the largest sum of magnitudes.
//
// A transportation problem: every row sends N units, every column takes N, each element carries at
// most one unit and earns its magnitude (Hubara et al., arXiv 2102.08124, as a min-cost flow).
// Every row and column keeps exactly N. Masks that keep fewer elements are never needed for
// sparsity, but the best of them may have a larger sum: [[0 0 0] [0 1 1] [0 1 1]] at 2:3 keeps 4 of
// 4 with four elements and 3 with six.
#pragma once
#include <cstdint>

#include "policies/mask/tile_mask.hpp"

namespace numemu::policies {

/// The mask with the largest sum of costs [M, M] that keeps exactly `kept` of every row and column;
/// of several, for every M, the one whose row-major bit string is largest. 1 <= kept <= size <= 32.
/// Costs at least 0; 1024 times the largest fits (tile_costs() sees to that).
template <class Cost>
TileMask exact_tile(const Cost* costs, int size, int kept);

/// Of the magnitudes of x, in whichever integers hold them.
TileMask exact_tile(const float* x, int size, int kept);

}  // namespace numemu::policies
