// Shipped recipes of inference on trained networks under MLPerf's quality targets, paired by image.
#pragma once
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::mlperf {

/// Verdicts of every network, recipe and gate, the images that each needs beside a planning figure,
/// and the images that three ways of comparing need (settings nets, trained, data, recipes, gates,
/// epochs, batch, train_samples, eval_samples).
void add_gates(const ExperimentRun&, Conclusion&);

}  // namespace numemu::experiments::mlperf
