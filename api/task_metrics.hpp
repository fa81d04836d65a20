// Figures of networks on a task as tuning and training compare them, and their table.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/networks.hpp"

namespace numemu::api {

/// What the figure that the task is judged by needs.
std::vector<net::OutputScore> task_scores(const Dataset&);
/// Evaluations with task_scores(), paired.
TaskMetrics metrics_of(const Dataset&, const std::vector<net::OutputScore>&, const Evaluation& own,
                       const Evaluation& float32);
/// Null for none, and for numbers that are not finite; without what float32 `itself` has not,
/// changes.
Json metrics_json(const std::optional<TaskMetrics>&, bool itself);

/// A row of each; the first is what the changes of the others are from.
std::string metrics_table(const std::vector<std::pair<std::string, const TaskMetrics*>>&);
/// "WHAT changed top-1 by +0.80 points, 95 % interval [-1.12, +2.82]"
std::string gain_text(const std::string& what, const experiments::JudgedFigure& gain);

}  // namespace numemu::api
