#include "policies/tune/base/tuning.hpp"

#include <numeric>

#include "formats/error.hpp"

namespace numemu::policies {

Recipe tuned_recipe(const Tuning& tuning) {
  return with_ranges(tuning.recipe, tuning.ranges, tuning.where);
}

std::unique_ptr<RecipeNumerics> tuned_numerics(const Tuning& tuning) {
  return tuned_numerics(tuning, tuning.graph);
}

std::unique_ptr<RecipeNumerics> tuned_numerics(const Tuning& tuning, const net::Graph& calibrated) {
  auto numerics =
      std::make_unique<RecipeNumerics>(tuned_recipe(tuning), tuning.graph, tuning.where);
  numerics->freeze(calibrated, tuning.calibration.samples, tuning.calibration.batch);
  return numerics;
}

CalibrationStep::CalibrationStep(std::int64_t first, std::int64_t count)
    : ids_(static_cast<std::size_t>(count)), step_{.samples = &ids_} {
  std::iota(ids_.begin(), ids_.end(), first);
}

FixedRanges calibrated_ranges(const Recipe& recipe, const net::Graph& graph,
                              const Calibration& calibration) {
  RecipeNumerics numerics(recipe, graph);
  numerics.freeze(graph, calibration.samples, calibration.batch);
  const StaticScales scales = numerics.roles().static_scales();
  FixedRanges ranges;
  for (const auto& [layer, roles] : numerics.bound().products()) {
    const auto found = scales.find(layer.name);
    if (layer.weight != nullptr && found != scales.end())
      ranges[layer.name].activation = range_of(*roles[RolePart::activation], found->second);
  }
  return ranges;
}

void complete_ranges(Tuning& tuning) {
  for (const auto& [layer, found] :
       calibrated_ranges(tuning.recipe, tuning.reference, tuning.calibration)) {
    LayerRanges& ranges = tuning.ranges[layer];
    if (!ranges.activation) ranges.activation = found.activation;
  }
}

net::Tensor& parameter_of(net::Graph& graph, std::string_view name) {
  for (net::Parameter* parameter : graph.parameters()) {
    if (parameter->name == name) return parameter->value;
  }
  throw Error("parameter " + std::string(name) + ": expected one of the network " + graph.name);
}

}  // namespace numemu::policies
