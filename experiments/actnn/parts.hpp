// The questions of actnn; each adds its tables, findings, charts and sentences.
#pragma once
#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::actnn {

/// Weight gradients of each layer of `nets` with compressed contexts: variance, mean and the
/// published bound, with 1 to 8 bits and with greedy ones (settings nets, bits, group, draws,
/// gradient_train, gradient_batch).
void add_variance(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// What each context of `net` adds to the variance of the first layer's gradient, alone and behind
/// others (settings net, passes).
void add_layers(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// Bits by the greedy algorithm against the optimum (setting instances).
void add_allocation(const ExperimentRun&, Conclusion&);

/// Bytes kept for a sample, and networks trained at levels L0 to L3 and with fixed bits (settings
/// net, epochs, batch, train_samples, eval_samples, seeds).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::actnn
