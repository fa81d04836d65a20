// The ways to train that are compared, as masks of recipes.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "experiments/stochastic_pruning/parts.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments::stochastic_pruning {

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
