// The parts of the experiment `optimizer-state`.
#pragma once
#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::optimizer_state {

/// Trains `net` with every method and compares top-1, lost updates and second moments of 0.
void add_net(const ExperimentRun&, const std::string& net, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::optimizer_state
