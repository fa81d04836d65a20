// The option --recipe: a file, or the name of a shipped recipe.
#pragma once
#include <string>

#include "cli/options.hpp"

namespace numemu::cli {

/// Adds it; `file` is the path of the recipe when the command runs, empty where none is given.
/// `help` says what it is for, and lists the shipped recipes of inference, with `training` all.
void add_recipe(Command&, std::string& file, const std::string& help, bool training = false);
/// The file of a recipe (experiments/engine/recipe_files.hpp); "" stays.
std::string recipe_path(const std::string& given);

}  // namespace numemu::cli
