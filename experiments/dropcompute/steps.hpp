// Simulated steps of DropCompute beside both closed forms.
#pragma once
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::dropcompute {

/// Every law of the setting `laws` at every number of `step_workers` (settings micro_batches,
/// overhead, warm, steps, draws): findings, a table, and charts over workers and thresholds.
void add_steps(const ExperimentRun&, Conclusion&);

}  // namespace numemu::experiments::dropcompute
