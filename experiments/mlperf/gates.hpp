// Shipped recipes of inference on trained networks under MLPerf's quality targets, paired by image.
#pragma once
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::mlperf {

/// Throws Error for a gate that is no share of float32's top-1.
void check_gate(const std::string&);
/// Throws Error for a recipe that is none, before any work.
void check_recipes(const ExperimentRun&);

/// Verdicts of every network, recipe and gate, the images that each needs beside a planning figure,
/// and the images that three ways of comparing need (settings nets, trained, data, recipes, gates,
/// epochs, batch, train_samples, eval_samples).
void add_gates(const ExperimentRun&, Conclusion&);

}  // namespace numemu::experiments::mlperf
