// Recipes are compared as flat lists of keys and values.
#include "cli/point_labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/report_files.hpp"

namespace numemu::cli {
namespace {

using Json = nlohmann::ordered_json;

/// What role_text and unit_text say.
bool is_in_words(const std::string& path) {
  for (const std::string role : {"/roles/weight", "/roles/activation"}) {
    if (path == role) return true;
    for (const char* key : {"format", "rounding", "overflow", "scale", "granularity", "mask"}) {
      if (path == role + "/" + key) return true;
    }
  }
  return path == "/gemms/fprop/unit";
}

/// Of a role that is float32, which the words say, nothing else is there.
bool is_of_float32(const std::string& path, const Json& recipe) {
  for (const std::string role : {"/roles/weight", "/roles/activation"}) {
    if (path.starts_with(role + "/")) return recipe.contains(role);
  }
  return false;
}

/// The keys, as JSON pointers, that differ between points or are not in all of them.
std::set<std::string> varying_keys(const std::vector<Json>& recipes) {
  std::map<std::string, Json> first;
  std::set<std::string> varying;
  for (const Json& recipe : recipes) {
    for (const auto& [path, value] : recipe.items()) {
      if (first.emplace(path, value).first->second != value) varying.insert(path);
    }
  }
  for (const auto& [path, value] : first) {
    const bool everywhere =
        std::all_of(recipes.begin(), recipes.end(), [&, &path = path](const Json& recipe) {
          return recipe.contains(path) || is_of_float32(path, recipe);
        });
    if (!everywhere) varying.insert(path);
  }
  return varying;
}

/// Whether the units of the backward products are everywhere those of the forward one.
bool follows_forward(const std::string& path, const std::vector<Json>& recipes) {
  constexpr std::size_t kGemm = sizeof "/gemms/" - 1, kName = sizeof "dgrad" - 1;
  if (!path.starts_with("/gemms/") || path.compare(kGemm, kName, "fprop") == 0) return false;
  std::string forward = path;
  forward.replace(kGemm, kName, "fprop");
  return std::all_of(recipes.begin(), recipes.end(), [&](const Json& recipe) {
    return recipe.value(path, Json()) == recipe.value(forward, Json());
  });
}

std::string dotted(std::string path) {
  std::replace(path.begin(), path.end(), '/', '.');
  return path.substr(1);
}

}  // namespace

std::vector<std::string> point_labels(const experiments::SweepConfig& config) {
  std::vector<Json> recipes;
  for (const experiments::Point& point : config.points)
    recipes.push_back(point.recipe.json().flatten());
  std::vector<std::string> keys;
  if (!recipes.empty()) {
    for (const std::string& path : varying_keys(recipes)) {
      if (!is_in_words(path) && !follows_forward(path, recipes)) keys.push_back(path);
    }
  }
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    const Json& recipe = config.points[i].recipe.json();
    std::string label = fmt::format("W {} A {} {}", role_text(recipe["roles"]["weight"]),
                                    role_text(recipe["roles"]["activation"]),
                                    unit_text(recipe["gemms"]["fprop"]["unit"]));
    for (const std::string& path : keys) {
      const Json value = recipes[i].value(path, Json());
      if (value.is_null()) continue;  // another point says what it has here
      label += fmt::format(", {} {}", dotted(path),
                           value.is_string() ? value.get<std::string>() : value.dump());
    }
    labels.push_back(std::move(label));
  }
  return labels;
}

}  // namespace numemu::cli
