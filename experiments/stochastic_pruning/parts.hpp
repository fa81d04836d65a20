// The questions of stochastic-pruning; each adds its tables, findings, charts and sentences.
#pragma once
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/stochastic_pruning/layer_sparsity.hpp"

namespace numemu::experiments::stochastic_pruning {

/// Numbers of a known law: closed forms against samples, and the normal law where it does not hold
/// (settings samples, shares).
void add_synthetic(const ExperimentRun&, Conclusion&);

/// A gradient of float32 training in the middle of the run.
struct ObservedLayer {
  std::string layer;
  LayerMagnitudes magnitudes;
};

/// Gradients of a network in float32 training: both laws against what pruning does, layer by layer
/// and step by step, and thresholds predicted from earlier steps (settings share, history,
/// observations). Returns the laws of the setting `plan_law`, in the order of forward.
std::vector<ObservedLayer> add_gradients(const ExperimentRun&, const std::string& net,
                                         const net::Dataset&, Conclusion&);

/// Accuracy against the sparsity reached: without bias, with bias, and shared between layers in
/// several ways (settings shares, share, plan_share, seeds).
void add_accuracy(const ExperimentRun&, const std::string& net, const net::Dataset&,
                  const std::vector<ObservedLayer>&, Conclusion&);

/// A list setting of numbers in (0, 1). Throws Error naming the key.
std::vector<double> shares_of(const Settings&, const std::string& key);

}  // namespace numemu::experiments::stochastic_pruning
