#include "cli/recipe_option.hpp"

#include <fmt/format.h>

#include <vector>

#include "cli/command.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "formats/joined.hpp"

namespace numemu::cli {

std::string recipe_path(const std::string& given) {
  return given.empty() ? given : experiments::recipe_file(given, data_folder(), "--recipe");
}

void add_recipe(Command& command, std::string& file, const std::string& help, bool training) {
  command.option("--recipe NAME|R.json", file,
                 fmt::format("{} (default: float32). Shipped: {}", help,
                             joined(experiments::shipped_recipes(data_folder(), training), ", ")));
  command.before_run([&file] { file = recipe_path(file); });
}

}  // namespace numemu::cli
