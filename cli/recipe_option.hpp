// The option --recipe: a file, or the name of a shipped recipe.
#pragma once
#include <string>

#include "cli/options.hpp"

namespace numemu::cli {

/// Adds it; `file` is the path of the recipe when the command runs, empty where none is given.
/// `help` says what it is for.
void add_recipe(Command&, std::string& file, const std::string& help);
/// The file of a recipe: what is given where such a file exists or is meant (a path, or a name with
/// an ending), else that of the shipped recipe. Throws Error with the nearest name.
std::string recipe_path(const std::string& given);

}  // namespace numemu::cli
