// The scores of a row as a table.
#pragma once
#include <cstdint>

#include "experiments/engine/row.hpp"

namespace numemu::cli {

/// Prints experiments::scores_of() of so many samples, with the reasons of figures that are
/// missing.
void print_scores(const std::vector<experiments::RowScore>&, std::int64_t samples);

}  // namespace numemu::cli
