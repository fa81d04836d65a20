#include "experiments/stochastic_pruning/methods.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace numemu::experiments::stochastic_pruning {
namespace {

Json role(const std::string& mask) {
  const Json text = mask.empty() ? Json(nullptr) : Json(mask);
  return {{"gradient", {{"format", nullptr}, {"mask", text}}}};
}

/// The masks of a plan: each layer's share of non-zeros below its threshold.
std::map<std::string, std::string> masks_of(const std::vector<ObservedLayer>& layers,
                                            const std::vector<double>& thresholds,
                                            std::int64_t history) {
  constexpr double kLeast = 1e-4;  // as many digits as the text has
  std::map<std::string, std::string> masks;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const MagnitudeLaw& law = layers[l].magnitudes.law;
    const double share = effect(Pruning::stochastic, law, thresholds[l]).below;
    if (share < kLeast) {
      masks[layers[l].layer] = "";
      continue;
    }
    masks[layers[l].layer] =
        fmt::format("stochastic({:.4f},law={},history={})", std::min(share, 1 - kLeast),
                    law.law == ThresholdLaw::normal ? "normal" : "lognormal", history);
  }
  return masks;
}

std::vector<LayerMagnitudes> magnitudes_of(const std::vector<ObservedLayer>& layers) {
  std::vector<LayerMagnitudes> magnitudes;
  for (const ObservedLayer& layer : layers) magnitudes.push_back(layer.magnitudes);
  return magnitudes;
}

/// So that errors count relative to each layer's power.
std::vector<LayerMagnitudes> relative(std::vector<LayerMagnitudes> layers) {
  for (LayerMagnitudes& layer : layers) layer.weight = 1 / second_moment(layer.law);
  return layers;
}

std::vector<double> equal_shares(const ExperimentRun& run,
                                 const std::vector<LayerMagnitudes>& layers) {
  const double share = run.settings.number("plan_share", 0.01, 0.999);
  std::vector<double> thresholds;
  for (const LayerMagnitudes& layer : layers)
    thresholds.push_back(threshold_below(layer.law, share));
  return thresholds;
}

}  // namespace

double planned_zeros(const ExperimentRun& run, const std::vector<ObservedLayer>& layers) {
  const std::vector<LayerMagnitudes> magnitudes = magnitudes_of(layers);
  return total_effect(Pruning::stochastic, magnitudes, equal_shares(run, magnitudes)).zeros;
}

std::vector<Method> methods_of(const ExperimentRun& run, const std::vector<ObservedLayer>& layers) {
  const std::int64_t history = run.settings.integer("history", 1, 1000);
  std::vector<Method> methods = {{kDense, kDense, "", {}, 0}};
  const std::vector<double> shares = shares_of(run.settings, "shares");
  for (const char* const rule : {kStochastic, kHard}) {
    for (const double share : shares) {
      const std::string mask = fmt::format("{}({},history={})", rule, share, history);
      methods.push_back({mask, rule, mask, {}, share});
    }
  }
  const double share = run.settings.number("share", 0.01, 0.999);
  const std::string input = fmt::format("stochastic({},history={},at=input)", share, history);
  methods.push_back({input, kInput, input, {}, 0});

  const std::vector<LayerMagnitudes> magnitudes = magnitudes_of(layers);
  const double zeros = planned_zeros(run, layers);
  const auto plan = [&](const std::string& name, const std::vector<double>& thresholds) {
    methods.push_back({fmt::format("{}, {:.0f} % zeros", name, 100 * zeros), kShared, "",
                       masks_of(layers, thresholds, history), 0});
  };
  plan("equal p", equal_shares(run, magnitudes));
  plan("equal cosine", thresholds_of_equal_cosine(Pruning::stochastic, magnitudes, zeros));
  plan("least relative error",
       thresholds_of_least_error(Pruning::stochastic, relative(magnitudes), zeros));
  plan("one threshold", thresholds_of_least_error(Pruning::stochastic, magnitudes, zeros));
  return methods;
}

Json recipe_of(const Method& method) {
  Json recipe = Json::object();
  if (!method.mask.empty()) recipe["roles"] = role(method.mask);
  for (const auto& [layer, mask] : method.layers)
    recipe["layers"].push_back({{"match", layer}, {"roles", role(mask)}});
  return recipe;
}

}  // namespace numemu::experiments::stochastic_pruning
