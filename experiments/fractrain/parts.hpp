// The parts of the experiment `fractrain`.
#pragma once
#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::fractrain {

/// Accuracy against the cost of static and of progressive precision.
void add_progressive(const ExperimentRun&, const net::Dataset&, Conclusion&);
/// Precision that a gate chooses for each sample in two layers.
void add_dynamic(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::fractrain
