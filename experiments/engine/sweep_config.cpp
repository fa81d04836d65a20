#include "experiments/engine/sweep_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "emu/net/train/score.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/suggest.hpp"
#include "formats/version.hpp"
#include "policies/canonical_json.hpp"
#include "policies/recipe/recipe.hpp"
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

constexpr std::int64_t kMostPoints = 1000000;
constexpr std::size_t kMostKeys = 1000;  // of a point; expansion is quadratic in them
constexpr std::int64_t kMostImages = 100000000;
const std::vector<std::string> kKeys = {
    "numemu_sweep", "net",     "data",        "eval_images", "seeds",
    "base",         "grid",    "points",      "tie",         "fold_batch_norm",
    "predictions",  "metrics", "calibrate_on"};
constexpr const char* kRecipe = "recipe";  // the key of a grid that replaces the base

/// A recipe and what it is called; "" where it has no name.
struct NamedRecipe {
  std::string name;
  Json json;  ///< canonical
};

/// A recipe, or the name of a shipped one or a file.
NamedRecipe named_recipe(const Json& value, const std::string& data, const std::string& where) {
  if (value.is_string()) {
    const std::string given = value.get<std::string>();
    return {recipe_name(given), read_recipe(given, data, where)};
  }
  if (!value.is_object())
    throw Error(where + ": expected a recipe, or the name of a shipped one or a file");
  return {"", policies::Recipe::parse(value, where).json()};
}

/// "int8-static, gemms.*.unit exact"; settings leave a recipe without a name without one.
std::string name_of(const NamedRecipe& recipe, const PointSettings& settings) {
  std::string name = recipe.name;
  if (name.empty()) return name;
  for (const auto& [key, value] : settings)
    name +=
        fmt::format(", {} {}", key, value.is_string() ? value.get<std::string>() : value.dump());
  return name;
}

/// A role set to a bare format ("roles.weight": "int8") is an error of the recipe reader, which
/// names the key.
Point make_point(const SweepConfig& config, NamedRecipe base, PointSettings settings,
                 std::optional<std::uint64_t> seed, const std::string& data,
                 const std::string& where) {
  const auto own = std::find_if(settings.begin(), settings.end(),
                                [](const auto& setting) { return setting.first == kRecipe; });
  if (own != settings.end()) {
    base = named_recipe(own->second, data, where + ": " + kRecipe);
    settings.erase(own);
  }
  Json recipe = base.json;
  if (seed) recipe["seed"] = *seed;
  apply_settings(recipe, settings, where);
  Point point;
  point.row.net = config.net;
  point.row.data = config.data;
  point.row.eval_images = config.eval_images;
  point.where = where;
  point.recipe_name = name_of(base, settings);
  point.sets_calibration =
      !base.name.empty() && std::ranges::any_of(settings, [](const auto& setting) {
        return setting.first.starts_with("calibrate.");
      });
  set_recipe(point, policies::Recipe::parse(recipe, where));
  if (config.fold_batch_norm) point.row.fold_batch_norm = true;
  return point;
}

/// One axis of the grid: settings that move together.
using Axis = std::vector<PointSettings>;

std::vector<Axis> axes_of(const JsonReader& grid, const JsonReader& ties) {
  std::vector<std::pair<std::string, Json>> lists;
  if (!grid.is_null()) {
    if (!grid.value().is_object()) grid.fail("an object of lists");
    if (grid.value().size() > kMostKeys) grid.fail(fmt::format("at most {} keys", kMostKeys));
    for (const auto& item : grid.value().items()) {
      if (!item.value().is_array() || item.value().empty())
        grid.member(item.key()).fail("a list of at least one value");
      lists.emplace_back(item.key(), item.value());
    }
  }
  const auto list = [&](const std::string& key) {
    return std::find_if(lists.begin(), lists.end(),
                        [&](const auto& entry) { return entry.first == key; });
  };
  std::map<std::string, std::vector<std::string>> followers;  // grid key -> tied keys
  std::set<std::string> led;
  std::size_t tied_keys = 0;
  if (!ties.is_null()) {
    if (!ties.value().is_array()) ties.fail("a list of lists of keys");
    for (const Json& tie : ties.value()) {
      std::vector<std::string> keys;
      for (const Json& key : tie.is_array() ? tie : Json::array()) {
        if (key.is_string()) keys.push_back(key);
      }
      if (keys.size() < 2 || keys.size() != tie.size()) ties.fail("lists of at least two keys");
      tied_keys += keys.size();
      if (tied_keys > kMostKeys) ties.fail(fmt::format("at most {} keys in all", kMostKeys));
      const auto leader = std::find_if(keys.begin(), keys.end(), [&](const std::string& key) {
        return list(key) != lists.end();
      });
      if (leader == keys.end())
        throw Error(fmt::format("{}: none of '{}' is a key of the grid", ties.where(),
                                joined(keys, "', '")));
      for (const std::string& key : keys) {
        if (key == *leader) continue;
        if (!led.insert(key).second)
          throw Error(fmt::format("{}: '{}' is tied twice", ties.where(), key));
        if (list(key) != lists.end() && list(key)->second.size() != list(*leader)->second.size()) {
          throw Error(fmt::format("{}: '{}' and '{}' have lists of different lengths", ties.where(),
                                  *leader, key));
        }
        followers[*leader].push_back(key);
      }
    }
  }
  std::vector<Axis> axes;
  for (const auto& [key, values] : lists) {
    if (led.contains(key)) continue;
    Axis axis;
    for (std::size_t i = 0; i < values.size(); ++i) {
      PointSettings settings = {{key, values[i]}};
      for (const std::string& tied : followers[key]) {
        settings.emplace_back(tied, list(tied) == lists.end() ? values[i] : list(tied)->second[i]);
      }
      axis.push_back(std::move(settings));
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

/// Cartesian product, the last axis fastest.
std::vector<PointSettings> cells_of(const std::vector<Axis>& axes, const std::string& where) {
  std::vector<PointSettings> cells = {{}};
  for (const Axis& axis : axes) {
    std::vector<PointSettings> next;
    if (static_cast<std::int64_t>(cells.size() * axis.size()) > kMostPoints)
      throw Error(where + ": expected at most a million points");
    for (const PointSettings& cell : cells) {
      for (const PointSettings& settings : axis) {
        next.push_back(cell);
        next.back().insert(next.back().end(), settings.begin(), settings.end());
      }
    }
    cells = std::move(next);
  }
  return cells;
}

}  // namespace

void apply_settings(Json& recipe, PointSettings settings, const std::string& where) {
  std::stable_sort(settings.begin(), settings.end(),
                   [](const auto& a, const auto& b) { return rank(a.first) < rank(b.first); });
  for (const auto& [path, value] : settings)
    set_path(recipe, split(path), 0, value, where + ": " + path);
}

void set_recipe(Point& point, const policies::Recipe& recipe) {
  point.recipe = recipe.last_stage();
  point.row.recipe = point.recipe.json();
  if (const auto stages = std::ssize(recipe.stages()); stages > 0) point.row.stage = stages;
}

void turn_predictions_off(Point& point) { point.row.predictions = false; }

void turn_predictions_off(SweepConfig& config) {
  for (Point& point : config.points) turn_predictions_off(point);
  config.json["predictions"] = false;
}

bool makes_predictions(const Point& point) { return point.row.predictions.value_or(true); }

std::string row_key(const RowPoint& point) { return row_key(json_of(point)); }

std::string row_key(const Json& point) {
  return sha256_hex(policies::canonical_json(point) + kNumericsVersion);
}

void set_metrics(SweepConfig& config, const std::vector<std::string>& names) {
  for (const std::string& name : names) net::find_score(name);
  config.metrics = names;
  if (names.empty()) return;
  for (Point& point : config.points) point.row.metrics = names;
  config.json["metrics"] = names;
}

void set_calibration(SweepConfig& config, const std::string& data) {
  if (data.empty()) return;
  config.calibrate_on = data;
  config.json["calibrate_on"] = data;
}

SweepConfig parse_sweep(const std::string& text, const std::string& where,
                        const std::string& data) {
  const Json json = parse_json(text, where);
  const JsonReader root(json, where);
  root.require_keys(kKeys);
  if (!root.has("numemu_sweep")) root.fail("a key 'numemu_sweep' with the schema version 1");
  if (root.member("numemu_sweep").value() != 1)
    root.member("numemu_sweep").fail("schema version 1");

  SweepConfig config;
  config.net = root.member("net").text("lenet");
  config.data = root.member("data").text("glyphs");
  if (const JsonReader fold = root.member("fold_batch_norm"); !fold.is_null()) {
    if (!fold.value().is_boolean()) fold.fail("true or false");
    config.fold_batch_norm = fold.value().get<bool>();
  }
  bool predictions = true;
  if (const JsonReader wanted = root.member("predictions"); !wanted.is_null()) {
    if (!wanted.value().is_boolean()) wanted.fail("true or false");
    predictions = wanted.value().get<bool>();
  }
  config.eval_images = root.member("eval_images").integer(10000, 1, kMostImages);
  const Json base_text =
      root.has("base") ? root.member("base").value() : Json{{"numemu_recipe", 1}};
  const NamedRecipe named = named_recipe(base_text, data, where + ": base");
  const Json& base = named.json;

  std::vector<std::string> metrics;
  if (const JsonReader list = root.member("metrics"); !list.is_null()) {
    if (!list.value().is_array()) list.fail("a list of metrics");
    for (std::size_t i = 0; i < list.value().size(); ++i) {
      if (!list.value()[i].is_string()) list.fail("a list of names");
      metrics.push_back(list.value()[i].get<std::string>());
    }
  }

  std::vector<std::uint64_t> seeds;
  const JsonReader seed_list = root.member("seeds");
  if (!seed_list.is_null() && !seed_list.value().is_array()) seed_list.fail("a list of seeds");
  for (const Json& seed : seed_list.is_null() ? Json::array({base["seed"]}) : seed_list.value()) {
    seeds.push_back(JsonReader(seed, seed_list.where()).integer(0, 0, std::int64_t{1} << 53));
  }
  if (seeds.empty()) seed_list.fail("at least one seed");

  const JsonReader grid = root.member("grid"), points = root.member("points"),
                   ties = root.member("tie");
  std::vector<PointSettings> cells;
  if (!grid.is_null() || points.is_null()) cells = cells_of(axes_of(grid, ties), where);
  if (!points.is_null()) {
    if (!points.value().is_array()) points.fail("a list of objects");
    for (const Json& single : points.value()) {
      if (!single.is_object()) points.fail("a list of objects of recipe keys");
      if (single.size() > kMostKeys)
        points.fail(fmt::format("objects of at most {} keys", kMostKeys));
      PointSettings settings;
      for (const auto& item : single.items()) settings.emplace_back(item.key(), item.value());
      cells.push_back(std::move(settings));
    }
  }
  if (grid.is_null() && !points.is_null() && !ties.is_null() && !ties.value().empty())
    ties.fail("a key 'grid', whose lists it ties");
  const auto any_sets = [&](std::string_view key) {
    return std::any_of(cells.begin(), cells.end(), [&](const PointSettings& cell) {
      return std::any_of(cell.begin(), cell.end(), [&](auto& s) { return s.first == key; });
    });
  };
  if (!seed_list.is_null() && any_sets("seed"))
    seed_list.fail("no list, as the grid or the points set 'seed'");
  // Recipes of a grid have their own seeds unless the sweep has some.
  const bool own_seeds = seed_list.is_null() && any_sets(kRecipe);
  std::set<std::string> seen;
  for (const std::uint64_t seed : seeds) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      Point point =
          make_point(config, named, cells[i], own_seeds ? std::nullopt : std::optional(seed), data,
                     fmt::format("{}: point {}", where, i));
      if (seen.insert(policies::canonical_json(json_of(point.row))).second) {
        config.points.push_back(std::move(point));
      } else {
        ++config.repeated;
      }
    }
  }
  config.json = {{"numemu_sweep", 1},
                 {"net", config.net},
                 {"data", config.data},
                 {"eval_images", config.eval_images},
                 {"fold_batch_norm", config.fold_batch_norm},
                 {"seeds", own_seeds || any_sets("seed") ? Json() : Json(seeds)},
                 {"base", base},
                 {"grid", !grid.is_null()    ? grid.value()
                          : points.is_null() ? Json::object()
                                             : Json()},
                 {"points", points.is_null() ? Json::array() : points.value()},
                 {"tie", ties.is_null() ? Json::array() : ties.value()}};
  if (!predictions) turn_predictions_off(config);
  set_metrics(config, metrics);
  set_calibration(config, root.member("calibrate_on").text(""));
  return config;
}

}  // namespace numemu::experiments
