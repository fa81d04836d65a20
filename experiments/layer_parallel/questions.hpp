// The questions of layer-parallel about gradients, each with its findings and tables.
#pragma once
#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::layer_parallel {

/// Chains of scalar stages with converged variables (settings chain_stages, chain_betas, chains).
void add_chains(const ExperimentRun&, Conclusion&);
/// Gradients of one batch of a network at its first weights: at multipliers of backpropagation,
/// after each round of steps of the variables, and with variables in a format (settings net,
/// stages, betas, formats, batch).
void add_gradients(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::layer_parallel
