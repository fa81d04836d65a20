// Recipes: read one or build it, bind it to a network, see what becomes of each layer.
#pragma once
#include <string>
#include <vector>

#include "api/context.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::api {

using policies::EffectiveBits, policies::LayerRecipe, policies::Recipe;

/// The file of a recipe, or of a shipped one by name; "" stays.
std::string recipe_path(const std::string& name, const Folders&);
/// The recipe of a file or a shipped one by name, with its stages; float32 for "". Throws Error
/// naming the file and the key.
Recipe open_recipe(const std::string& name, const Folders&);
/// A recipe from its parts: {"roles": {"weight": {"format": "int8"}}}, without "numemu_recipe".
Recipe make_recipe(Json parts);

/// The recipe as inference uses it on a network: its last stage, with the ranges of the network's
/// checkpoint unless it has some itself. Throws Error where it does not fit the network; `where`
/// starts the message.
Recipe bind_recipe(const Recipe&, const experiments::TrainedNet&,
                   const std::string& where = "recipe");

/// What a layer that multiplies reads and which unit computes it.
struct LayerFacts {
  std::string name;
  LayerRecipe recipe;
};
/// In the order of the network.
std::vector<LayerFacts> layers_of(const Recipe&, const net::Graph&);

/// Stored bits per element of a network under a bound recipe, of calibration samples of the data
/// set.
EffectiveBits bits_of(const Recipe&, const net::Graph&, const net::Dataset&);

/// The canonical form of a recipe or of a sweep file, every default written out.
Json canonical(const std::string& file, const Folders&);

}  // namespace numemu::api
