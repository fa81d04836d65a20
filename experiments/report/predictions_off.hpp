// Rows without predictions: made so, or shown so.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "experiments/report/record.hpp"

namespace numemu::experiments {

/// Whether some row was made with predictions; tables and reports have columns for them then.
bool any_predictions(const std::vector<Record>&);

/// The rows as if their points had turned predictions off; their keys stay.
std::vector<nlohmann::ordered_json> without_predictions(std::vector<nlohmann::ordered_json> rows);

}  // namespace numemu::experiments
