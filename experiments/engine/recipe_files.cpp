#include "experiments/engine/recipe_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/suggest.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const std::string& data) { return fs::path(data) / "recipes"; }

bool trains(const fs::path& file) {
  const Json json = Json::parse_or_null(read_text(file.string()));
  return std::ranges::any_of(std::array{"/roles/gradient", "/roles/state", "/update"},
                             [&](const char* key) {
                               const Json* const found = json.find_path(key);
                               return found != nullptr && !found->is_null();
                             });
}

}  // namespace

std::vector<std::string> shipped_recipes(const std::string& data, bool training) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder_of(data), none)) {
    if (entry.path().extension() == ".json" && (training || !trains(entry.path())))
      names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string recipe_file(const std::string& given, const std::string& data,
                        const std::string& where) {
  std::error_code none;
  if (given.find_first_of("./") != given.npos || fs::exists(given, none)) return given;
  const std::vector<std::string> names = shipped_recipes(data, true);
  if (std::find(names.begin(), names.end(), given) == names.end())
    throw Error(fmt::format("{}{}{}; expected a file or a shipped recipe", where,
                            where.empty() ? "" : ": ", unknown_name("recipe", given, names)));
  return (folder_of(data) / (given + ".json")).string();
}

Json read_recipe(const std::string& given, const std::string& data, const std::string& where) {
  const std::string file = recipe_file(given, data, where);
  return policies::Recipe::parse(parse_json(read_text(file), file), file).json();
}

std::string recipe_name(const std::string& file) {
  const fs::path path(file);
  return (path.extension() == ".json" ? path.stem() : path.filename()).string();
}

}  // namespace numemu::experiments
