// The load generator's scenarios on simulated machines beside the closed forms of their queues.
#pragma once
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::mlperf {

/// Throws Error for a law that is none.
void check_service(const std::string&);
/// Throws Error for a machine without closed forms, for a bound that nothing meets and for runs of
/// too many queries.
void check_scenarios(const Settings&);

/// Latencies, largest rates and how sure a run's numbers of queries make them (settings services,
/// servers, bound, seconds, runs).
void add_scenarios(const ExperimentRun&, Conclusion&);

}  // namespace numemu::experiments::mlperf
