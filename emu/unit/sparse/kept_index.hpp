// Metadata as indices: one uint8 per kept element, its place inside its group.
#pragma once
#include <cstdint>

#include "emu/unit/sparse/pattern.hpp"

namespace numemu::unit {

/// Layout `index`: rows x kept_depth() indices, each below M and above the one before it in its
/// group; pairwise, an even one and its successor. Throws Error naming row and position otherwise;
/// rows are counted from `first_row`.
void check_index(const Pattern&, const std::uint8_t* index, std::int64_t rows, std::int64_t depth,
                 std::int64_t first_row = 0);

}  // namespace numemu::unit
