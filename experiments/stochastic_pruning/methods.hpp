// The questions of stochastic-pruning: numbers of known laws, gradients in training, and ways to
// train with pruned gradients, as masks of recipes.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/stochastic_pruning/pruning_effect.hpp"
#include "formats/storage/json.hpp"

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

/// Methods with one of these names lie on one line of the chart.
inline constexpr const char* kDense = "dense";
inline constexpr const char* kStochastic = "stochastic";
inline constexpr const char* kHard = "hard";
inline constexpr const char* kInput = "stochastic, of what dgrad gives";
inline constexpr const char* kShared = "shared by layers";

/// One way to train; masks are those of the role gradient.
struct Method {
  std::string name, series;
  std::string mask;                           ///< of every layer; "" none
  std::map<std::string, std::string> layers;  ///< instead of it
  double share = 0;                           ///< 0: not one of the sweep over p

  const std::string& mask_of(const std::string& layer) const {
    const auto found = layers.find(layer);
    return found == layers.end() ? mask : found->second;
  }
};

/// Dense first; then the sweeps, pruning of what dgrad gives, and the plans, equal p first
/// (settings shares, share, plan_share, history).
std::vector<Method> methods_of(const ExperimentRun&, const std::vector<ObservedLayer>&);
Json recipe_of(const Method&);

/// What every plan shares between the layers: the zeros that the setting plan_share leaves as the p
/// of all of them.
double planned_zeros(const ExperimentRun&, const std::vector<ObservedLayer>&);

}  // namespace numemu::experiments::stochastic_pruning
