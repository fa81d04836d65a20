// Recipes by name: those that the program ships, or a file.
#pragma once
#include <string>
#include <vector>

#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// Names of the recipes in DATA/recipes, sorted; without `training` those of inference alone, which
/// say nothing of gradients.
std::vector<std::string> shipped_recipes(const std::string& data, bool training);

/// The file of a recipe: what is given where such a file exists or is meant (a path, or a name with
/// an ending), else that of the shipped recipe. Throws Error "WHERE: ..." with the nearest name.
std::string recipe_file(const std::string& given, const std::string& data,
                        const std::string& where);

/// Its canonical form. Throws Error naming the file and the key.
Json read_recipe(const std::string& given, const std::string& data, const std::string& where);

/// What rows and reports call the recipe of a file: its name without folder and without ".json".
std::string recipe_name(const std::string& file);

}  // namespace numemu::experiments
