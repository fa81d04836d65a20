// Training whose workers drop micro-batches, under the nominal and the realised divisor.
#pragma once
#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/workers/training_with_workers.hpp"

namespace numemu::experiments::dropcompute {

/// The networks of the training settings (experiments/workers/training_with_workers.hpp) with and
/// without drops (settings micro_batches, shares, threshold, train_law), paired by seed.
void add_training(const ExperimentRun&, Conclusion&);
/// For a data set that is loaded, in place of that of the setting.
void add_training_on(const ExperimentRun&, workers::Group, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::dropcompute
