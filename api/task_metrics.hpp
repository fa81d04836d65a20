// Figures of networks on a task as tuning and training compare them.
#pragma once
#include <optional>
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

}  // namespace numemu::api
