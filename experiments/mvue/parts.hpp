// The questions of mvue; each adds its tables, findings, charts and sentences.
#pragma once
#include <string>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::mvue {

/// Numbers of known laws: mean, variance and noise-to-signal ratio against closed forms (settings
/// samples, draws).
void add_laws(const ExperimentRun&, Conclusion&);

/// Gradients of networks, layer by layer, grouped along batch and space: mean and variance against
/// closed forms (settings gradient_nets, gradient_train, gradient_batch,
/// draws).
void add_gradients(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// How a gradient changes that is pruned in every dgrad it passes (settings propagation_net,
/// gradient_batch, passes).
void add_propagation(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// The error of dW averaged over batches: noise averages out, bias stays (settings batches,
/// repeats).
void add_averaging(const ExperimentRun&, Conclusion&);

/// Networks trained with pruned gradients (settings net, optimizer, epochs, batch,
/// train_samples, eval_samples, seeds).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::mvue
