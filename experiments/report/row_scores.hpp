// The scores of rows (experiments/engine/scores.hpp) as columns of tables.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/record.hpp"

namespace numemu::experiments {

/// Names of all scores but top-1, which has columns of its own, in the order of the rows.
std::vector<std::string> score_columns(const std::vector<Record>&);
/// "0.712 [0.7, 0.724]"; "" where it has none.
std::string score_text(const Record&, const std::string& name);

}  // namespace numemu::experiments
