// The questions of DropCompute: simulated steps beside both closed forms, and training that drops
// micro-batches.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "emu/stats/latency.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/workers/training_with_workers.hpp"

namespace numemu::experiments::dropcompute {

// Steps of DropCompute, drawn latency by latency: what the closed forms are compared with.

/// Worker n's micro-batch m takes in step s a draw of the law at the element (n, m) of
/// latency_source(seed, "dropcompute", s, "compute"). Nothing is stored: a step that is asked for
/// again is drawn again, in blocks of workers on all threads, to the same bits for any number of
/// them.
struct Simulation {
  stats::LatencyLaw law;
  std::int64_t workers = 1, micro_batches = 1;
  std::uint64_t seed = 0;
};

/// A step seen at ascending thresholds.
struct DrawnStep {
  double time = 0;                     ///< T: the longest worker without a threshold
  std::vector<std::int64_t> finished;  ///< micro-batches that ended before each threshold
  /// When the last worker left where the clock is read at the end of each micro-batch.
  std::vector<double> checked;
};
DrawnStep draw_step(const Simulation&, std::int64_t step, std::span<const double> thresholds);

/// The smallest time of a worker's 6th micro-batch (the last, where there are fewer) and the
/// largest of its last one, over steps [0, steps).
std::pair<double, double> accumulation_times(const Simulation&, std::int64_t steps);

/// The thresholds that the published code compares: 200 at equal distances over
/// accumulation_times() of the steps.
std::vector<double> published_thresholds(const Simulation&, std::int64_t steps);

/// Every law of the setting `laws` at every number of `step_workers` (settings micro_batches,
/// overhead, warm, steps, draws): findings, a table, and charts over workers and thresholds.
void add_steps(const ExperimentRun&, Conclusion&);

/// The networks of the training settings (experiments/workers/training_with_workers.hpp) with and
/// without drops, under the nominal and the realised divisor (settings micro_batches, shares,
/// threshold, train_law), paired by seed.
void add_training(const ExperimentRun&, workers::Group, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::dropcompute
