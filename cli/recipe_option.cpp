#include "cli/recipe_option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "cli/command.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::cli {
namespace {

std::filesystem::path shipped_folder() { return std::filesystem::path(data_folder()) / "recipes"; }

std::vector<std::string> shipped_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(shipped_folder(), none))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string recipe_path(const std::string& given) {
  std::error_code none;
  if (given.empty() || given.find_first_of("./") != given.npos ||
      std::filesystem::exists(given, none))
    return given;
  const std::vector<std::string> names = shipped_names();
  if (std::find(names.begin(), names.end(), given) == names.end())
    throw Error("--recipe: " + unknown_name("recipe", given, names));
  return (shipped_folder() / (given + ".json")).string();
}

void add_recipe(Command& command, std::string& file, const std::string& help) {
  command.option(
      "--recipe NAME|R.json", file,
      fmt::format("{} (default: float32). Shipped: {}", help, fmt::join(shipped_names(), ", ")));
  command.before_run([&file] { file = recipe_path(file); });
}

}  // namespace numemu::cli
