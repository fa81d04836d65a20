#include "experiments/engine/point_settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/suggest.hpp"
#include "policies/recipe/recipe_keys.hpp"
#include "policies/recipe/role_json.hpp"

namespace numemu::experiments {
namespace {

using Path = std::vector<std::string>;

constexpr std::size_t kRoleKeyDepth = 3;  // roles.weight.format

Path split(const std::string& path) {
  Path parts(1);
  for (const char c : path) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// 0: replaces whole things, 1: the format of a role, 2: another key of a role.
int rank(const std::string& path) {
  const Path parts = split(path);
  if (parts[0] != "roles" || parts.size() < kRoleKeyDepth) return 0;
  return parts.back() == "format" ? 1 : 2;
}

/// A scale that is the default of the role's format gives way to that of the next format.
void forget_default_scale(Json& role, const std::string& name) {
  if (name == "*" || !role.contains("format") || !role["format"].is_string()) return;
  const Json bare = {{"format", role["format"]}};
  const policies::RolePolicy policy =
      policies::read_role(JsonReader(bare, "recipe"), policies::role_row(name));
  if (policies::role_json(policy)["scale"] == role.value("scale", Json())) role.erase("scale");
}

bool is_recipe_key(const std::string& key) {
  const std::vector<std::string>& keys = policies::recipe_keys();
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

void set_path(Json& node, const Path& parts, std::size_t at, const Json& value,
              const std::string& where) {
  if (at == parts.size()) {
    node = value;
    return;
  }
  if (node.is_null()) node = Json::object();  // a role that was float32
  const std::string& part = parts[at];
  if (node.is_array()) {
    const bool digits = !part.empty() && std::all_of(part.begin(), part.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || part.size() > 6 || std::stoul(part) >= node.size())
      throw Error(
          fmt::format("{}: expected an index below {}, not '{}'", where, node.size(), part));
    return set_path(node[std::stoul(part)], parts, at + 1, value, where);
  }
  if (!node.is_object())
    throw Error(fmt::format("{}: '{}' is not an object", where, parts[at - 1]));
  if (part == "*") {
    for (auto& item : node.items()) set_path(item.value(), parts, at + 1, value, where);
    return;
  }
  const bool in_role = parts[0] == "roles" && at > 0;
  // Absent keys of policies are made; the recipe's reader refuses those that it does not know.
  const bool made = in_role || (at == 0 ? is_recipe_key(part) : parts[0] != "gemms");
  if (in_role && at + 1 == parts.size() && parts.size() >= kRoleKeyDepth) {
    if (part == "format") forget_default_scale(node, parts[1]);
    return policies::patch_role(node, {{part, value}});
  }
  if (!node.contains(part) && !made) {
    std::vector<std::string> known = at == 0 ? policies::recipe_keys() : std::vector<std::string>();
    for (const auto& item : node.items()) {
      if (at > 0) known.push_back(item.key());
    }
    throw Error(fmt::format("{}: {}", where, unknown_name("key", part, known)));
  }
  set_path(node[part], parts, at + 1, value, where);
}

}  // namespace

void apply_settings(Json& recipe, PointSettings settings, const std::string& where) {
  std::stable_sort(settings.begin(), settings.end(),
                   [](const auto& a, const auto& b) { return rank(a.first) < rank(b.first); });
  for (const auto& [path, value] : settings)
    set_path(recipe, split(path), 0, value, where + ": " + path);
}

}  // namespace numemu::experiments
