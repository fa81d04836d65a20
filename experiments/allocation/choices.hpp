// The options of a layer: formats of weights and activations, scale rule, unit.
#pragma once
#include <string>
#include <vector>

#include "formats/storage/json.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {

/// A way to run a layer: an entry of a recipe's `layers` without its `match`.
struct LayerChoice {
  std::string name;  ///< as the setting has it; unique
  Json patch;
};

/// Each text is WEIGHTS[/ACTIVATIONS][~SCALE][@UNIT], as "int4", "int4/int8~mse",
/// "mxfp4@exact", or a file with a list of {"name", "roles", "gemms"}. One format serves both
/// roles; float32 leaves a role unquantized. Without SCALE a format has its default scale rule.
/// Throws Error naming the setting or the file, also for a name that comes twice.
/// `granularity`: of weights in such a text, "channel" or "tensor".
std::vector<LayerChoice> read_choices(const std::vector<std::string>& texts,
                                      const std::string& granularity = "channel");

/// The entry of `layers` that gives this choice to a layer.
Json layer_entry(const std::string& layer, const LayerChoice&);
/// The recipe with these entries after its own.
Json with_layers(Json recipe, const Json& entries);

}  // namespace numemu::experiments
