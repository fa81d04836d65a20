// The table of a sweep's rows on a terminal.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/record.hpp"

namespace numemu::cli {

/// One line a row: numerics, bits, accuracy, its change from float32, SQNR measured and predicted.
/// Of several rows it has at most 120 columns of characters: what does not fit is left to the
/// report and named below. Rows of different points never have the same line.
std::string sweep_table(const std::vector<experiments::Record>&);

}  // namespace numemu::cli
