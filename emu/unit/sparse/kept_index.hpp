// Metadata as indices: one uint8 per kept element, its place inside its group.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/unit/gather.hpp"
#include "emu/unit/sparse/pattern.hpp"

namespace numemu::unit {

/// Layout `index`: rows x kept_depth() indices, each below M and above the one before it in its
/// group; pairwise, an even one and its successor. Throws Error naming row and position otherwise;
/// rows are counted from `first_row`.
void check_index(const Pattern&, const std::uint8_t* index, std::int64_t rows, std::int64_t depth,
                 std::int64_t first_row = 0);

// The depth offsets of B that belong to the kept elements of one row of A.

/// kept[j] = depth[j / N * M + index[j]] for `count` = kept_depth() elements: what `depth` of B's
/// gather is for this row of A. A sparse step is then the dense step over kept products in
/// ascending k, and elements of B opposite a dropped one are never read. The indices must be legal
/// (check_index).
void gather_kept(const Sparsity&, const std::uint8_t* index, std::int64_t count,
                 const std::int32_t* depth, std::int32_t* kept);

/// B as row `row` of A sees it; `index` is the whole metadata of A. Throws Error where the row's
/// indices break their rules, or the gather's depth is not a multiple of M.
Gather gather_kept(const Pattern&, const std::uint8_t* index, std::int64_t row, const Gather& b);

}  // namespace numemu::unit
