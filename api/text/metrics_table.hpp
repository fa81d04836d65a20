// The table of networks compared on a task.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "api/networks.hpp"

namespace numemu::api {

/// A row of each; the first is what the changes of the others are from.
std::string metrics_table(const std::vector<std::pair<std::string, const TaskMetrics*>>&);
/// "WHAT changed top-1 by +0.80 points, 95 % interval [-1.12, +2.82]"
std::string gain_text(const std::string& what, const experiments::JudgedFigure& gain);

}  // namespace numemu::api
