// The load generator's scenarios on simulated machines beside the closed forms of their queues.
#pragma once
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::mlperf {

/// Latencies, largest rates and how sure a run's numbers of queries make them (settings services,
/// servers, bound, seconds, runs).
void add_scenarios(const ExperimentRun&, Conclusion&);

}  // namespace numemu::experiments::mlperf
