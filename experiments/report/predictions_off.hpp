// Rows computed, or shown, without predictions.
#pragma once
#include <vector>

#include "experiments/report/record.hpp"

namespace numemu::experiments {

/// Whether some row may have predictions: then tables and reports have columns for them. Of float32
/// nothing is predicted.
bool any_predictions(const std::vector<Record>&);

/// The rows as if their points had turned predictions off; their keys stay.
std::vector<Row> without_predictions(std::vector<Row> rows);

}  // namespace numemu::experiments
