// Recipes: read one or build it, bind it to a network, see what becomes of each layer.
#pragma once
#include <string>
#include <vector>

#include "api/context.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::api {

using policies::EffectiveBits, policies::LayerRecipe, policies::Recipe;

// A recipe is named by a file, by the name of a shipped one, or by its JSON text itself, which may
// lack "numemu_recipe"; "" is float32.

/// The file of a recipe, or of a shipped one by name; "" and a JSON text stay.
std::string recipe_path(const std::string& name, const Folders&);
/// What starts messages about the recipe of recipe_path(): its file, "recipe" for a JSON text.
std::string recipe_where(const std::string& path);
/// The JSON of the recipe of recipe_path().
Json recipe_json(const std::string& path);
/// The recipe with its stages. Throws Error naming the file and the key.
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
