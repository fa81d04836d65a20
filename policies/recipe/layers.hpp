// The layers entries of a recipe: patches laid over the base, later ones winning.
#pragma once
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/recipe_units.hpp"

namespace numemu::policies {

/// {"roles", "gemms"} of `base` with an entry's patch laid over, canonical. The entry's gemms are
/// canonical already. Throws Error naming the key.
Json merged_layer(const Json& base, const JsonReader& entry);
/// The typed view of canonical {"roles", "gemms"}.
LayerRecipe typed_layer(const Json& merged, const RecipeUnits&);
/// Throws Error naming the key unless every quantized operand is one that its unit takes.
void require_units_take(const LayerRecipe&, const JsonReader& where);
/// The entries with canonical names, each checked against the base.
Json canonical_layers(const Json& base, const JsonReader& layers, RecipeUnits&);

}  // namespace numemu::policies
