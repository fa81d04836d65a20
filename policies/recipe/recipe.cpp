#include "policies/recipe/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include "formats/blocks/block_format.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/sidecar.hpp"
#include "formats/suggest.hpp"
#include "policies/recipe/choices.hpp"
#include "policies/recipe/fixed_ranges.hpp"
#include "policies/recipe/recipe_units.hpp"
#include "policies/recipe/roles.hpp"
#include "policies/recipe/stages.hpp"
#include "policies/recipe/update_json.hpp"

namespace numemu::policies {
namespace {

constexpr std::size_t kMostStages = 1000;                     // each is a whole recipe
constexpr std::int64_t kLargestSeed = std::int64_t{1} << 53;  // JSON numbers are doubles

constexpr const char* kVersion = "numemu_recipe";

/// In the order in which messages name them, then those of slots.def that came later.
std::vector<std::string> keys_of_recipes() {
  std::vector<std::string> keys = {
      kVersion,     "seed",   "roles",  "gemms",      "update", "calibrate", "layers",
      "penalty",    "norm",   "saved",  "exchange",   "drop",   "transform", "table",
      "objectives", "stages", "ranges", "quantizers", "edges",  "codebooks", "learn"};
  for (const PolicySlot& slot : policy_slots()) {
    const std::string key(slot.object());
    if (!key.empty() && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

/// Where the files that a recipe names are sought.
std::string folder_of(const std::string& where) {
  return std::filesystem::path(where).parent_path().string();
}

void add_codebooks(const Json& value, Json& out) {
  if (value.is_string()) {
    const std::string name = value.get<std::string>();
    // A block format names the codebook of its elements.
    const std::string element =
        name.find("(codebook(") != std::string::npos && !block_format_meant(name).empty()
            ? find_block_format(name).element->name
            : name;
    if (!codebook_file(element).empty()) out[element] = codebook_sha256(find_format(element));
  } else if (value.is_object() || value.is_array()) {
    for (const Json& part : value) add_codebooks(part, out);
  }
}

/// By format name ("codebook(FILE)"), the SHA-256 of the entries of every codebook in a canonical
/// recipe, as files change; null without any. Throws Error where `given`, the recipe's key, has
/// another digest.
Json codebooks_of(const Json& recipe, const JsonReader& given) {
  if (!given.is_null() && !given.value().is_object()) given.fail("digests by name of a codebook");
  Json out;
  add_codebooks(recipe, out);
  for (const auto& item : out.items()) {
    if (given.is_null() || !given.has(item.key())) continue;
    if (const JsonReader digest = given.member(item.key()); digest.value() != item.value())
      digest.fail(fmt::format("{}, the digest of the entries in the file", item.value().text()));
  }
  return out;
}

/// The keys of `exchange` beside format and rule; those that are not the defaults go to `out`.
ExchangePolicy read_exchange(const JsonReader& exchange, RecipeUnits& units, Json& out) {
  ExchangePolicy policy;
  if (!exchange.value().is_object()) return policy;
  if (const JsonReader order = exchange.member("order"); !order.is_null()) {
    policy.order = at(order, [&] { return net::read_exchange_order(order.text("")); });
    if (policy.order != net::ExchangeOrder{})
      out["exchange"]["order"] = net::to_string(policy.order);
  }
  if (const JsonReader unit = exchange.member("unit"); !unit.is_null()) {
    Json canonical = units.read(unit);
    policy.unit = units.find(canonical);
    at(unit, [&] { policy.unit->require_operand(find_format("float32")); });
    out["exchange"]["unit"] = std::move(canonical);
  }
  if (const JsonReader norm = exchange.member("norm"); !norm.is_null()) {
    if (norm.value() != "worker" && norm.value() != "synchronised")
      norm.fail("\"worker\" or \"synchronised\"");
    policy.synchronised = norm.value() == "synchronised";
    if (policy.synchronised) out["exchange"]["norm"] = "synchronised";
  }
  return policy;
}

}  // namespace

const std::vector<std::string>& recipe_keys() {
  static const std::vector<std::string> keys = keys_of_recipes();
  return keys;
}

const unit::Unit& LayerRecipe::unit(net::GemmKind kind) const {
  return kind == net::GemmKind::dgrad ? *dgrad : kind == net::GemmKind::wgrad ? *wgrad : *fprop;
}

/// By the entries of `layers` that match.
struct Recipe::ParsedLayers {
  std::mutex mutex;
  std::map<std::vector<std::size_t>, LayerRecipe> layers;
  FixedRanges ranges;
};

Recipe::Recipe() { *this = make(Json::object()); }

Recipe Recipe::parse_text(const std::string& text, const std::string& where) {
  return parse(parse_json(text, where), where);
}

Recipe Recipe::make(Json parts, const std::string& where, std::optional<std::uint64_t> seed) {
  if (!parts.contains(kVersion)) parts[kVersion] = 1;
  if (seed) parts["seed"] = *seed;
  return parse(parts, where);
}

Recipe Recipe::parse(const Json& json, const std::string& where) {
  const JsonReader given(json, where);
  given.require_keys(recipe_keys());
  Json moved = with_role_keys_moved(given);
  Recipe recipe = read(given.replaced_by(moved), where);
  recipe.read_stages(given.member("stages"), std::move(moved), where);
  return recipe;
}

Recipe Recipe::read(const JsonReader& root, const std::string& file) {
  if (!root.has(kVersion)) root.fail("a key 'numemu_recipe' with the schema version 1");
  if (root.member(kVersion).value() != 1) root.member(kVersion).fail("schema version 1");

  Recipe recipe(0);
  recipe.seed_ = static_cast<std::uint64_t>(root.member("seed").integer(0, 0, kLargestSeed));
  const auto units = std::make_shared<RecipeUnits>(folder_of(file));
  Json out = {{kVersion, 1}, {"seed", recipe.seed_}};
  out["roles"] = canonical_roles(root.member("roles"));
  out["gemms"] = canonical_gemms(root.member("gemms"), *units);
  require_units_take(typed_layer(out, *units), root);
  recipe.update_ = read_update(root.member("update"));
  out["update"] = update_json(recipe.update_);
  recipe.calibration_ = read_calibration(root.member("calibrate"));
  out["calibrate"] = calibration_json(recipe.calibration_);
  recipe.objectives_ = read_objectives(root.member("objectives"), recipe.update_.optimizer);
  if (!recipe.objectives_.empty())
    out["objectives"] = objectives_json(recipe.objectives_, recipe.update_.optimizer);
  recipe.choices_ = read_choices(root);
  write_choices(recipe.choices_, /*explicit_none=*/false, out);
  recipe.exchange_ = read_exchange(root.member("exchange"), *units, out);
  out["layers"] = canonical_layers(out, root.member("layers"), *units);
  for (const Json& entry : out["layers"])
    recipe.patches_.emplace_back(entry["match"].get<std::string>(),
                                 read_choices(JsonReader(entry, file)));
  recipe.parsed_ = std::make_shared<ParsedLayers>();
  recipe.parsed_->ranges = read_ranges(root.member("ranges"));
  if (!recipe.parsed_->ranges.empty()) out["ranges"] = ranges_json(recipe.parsed_->ranges);
  if (Json books = codebooks_of(out, root.member("codebooks")); !books.is_null())
    out["codebooks"] = std::move(books);
  recipe.json_ = std::make_shared<const Json>(std::move(out));
  recipe.units_ = units;
  return recipe;
}

void Recipe::read_stages(const JsonReader& stages, Json before, const std::string& file) {
  if (stages.is_null()) return;
  if (!stages.value().is_array()) stages.fail("an array");
  if (stages.value().empty()) return;
  if (stages.value().size() > kMostStages)
    stages.fail(fmt::format("at most {} stages", kMostStages));
  before.erase("stages");
  std::vector<Recipe> recipes = {*this};
  Json out = Json::array();
  for (std::size_t i = 0; i < stages.value().size(); ++i) {
    const JsonReader entry = stages.element(i), patch = entry.member("patch");
    entry.require_keys({"from", "patch"});
    starts_.push_back(read_start(entry.member("from"), starts_));
    patch.require_keys(recipe_keys());
    const Json moved = with_role_keys_moved(patch);
    require_stage_patch(patch.replaced_by(moved), before, recipes.back().json());
    before = merged_patch(before, moved);
    recipes.push_back(read(patch.replaced_by(before), file));
    if (recipes.back().update().optimizer != update_.optimizer)
      patch.member("update").fail("update.optimizer unchanged: stages share the optimizer's state");
    out.push_back({{"from", start_json(starts_.back())},
                   {"patch", patch_between(recipes[i].json(), recipes[i + 1].json())}});
  }
  Json whole = *json_;
  whole["stages"] = std::move(out);
  json_ = std::make_shared<const Json>(std::move(whole));
  in_stages_ = std::make_shared<const std::vector<Recipe>>(std::move(recipes));
}

Recipe Recipe::in_stage(std::size_t i) const { return in_stages_ ? in_stages_->at(i) : *this; }

std::vector<std::string> Recipe::training_keys() const {
  std::vector<std::string> keys;
  const auto chosen = [](const Choices& choices, std::size_t i) {
    return choices[i] && *choices[i];
  };
  const auto acts = [&](const Choices& choices, std::size_t i) {
    return chosen(choices, i) && acts_in_inference(policy_slots()[i], **choices[i]);
  };
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const bool somewhere = chosen(choices_, i) ||
                           std::any_of(patches_.begin(), patches_.end(),
                                       [&](const auto& patch) { return chosen(patch.second, i); });
    const bool also_inference =
        acts(choices_, i) || std::any_of(patches_.begin(), patches_.end(),
                                         [&](const auto& patch) { return acts(patch.second, i); });
    if (somewhere && !also_inference) keys.emplace_back(policy_slots()[i].key);
  }
  if (json().contains("exchange") && std::ranges::find(keys, "exchange") == keys.end())
    keys.emplace_back("exchange");
  if (!objectives_.empty()) keys.emplace_back("objectives");
  static const Recipe plain;
  const auto at = [](const Json& part, const std::string& key) {
    return part.contains(key) ? part.at(key) : Json();
  };
  const auto add = [&](const std::string& part, const std::string& key) {
    const bool patched = std::ranges::any_of(json()["layers"], [&](const Json& entry) {
      return entry.contains(part) && entry[part].contains(key);
    });
    const std::string name = part + "." + key;
    if ((patched || at(json()[part], key) != at(plain.json()[part], key)) &&
        std::ranges::find(keys, name) == keys.end())
      keys.push_back(name);
  };
  for (const RoleRow& role : role_table()) {
    if (role.training) add("roles", role.name());
  }
  for (const auto& item : json()["update"].items()) add("update", item.key());
  return keys;
}

LayerRecipe Recipe::layer(std::string_view name) const {
  const Json& entries = (*json_)["layers"];
  std::vector<std::size_t> matching;
  for (std::size_t i = 0; i < patches_.size(); ++i) {
    if (glob_match(patches_[i].first, name)) matching.push_back(i);
  }
  const auto with_fixed = [&](LayerRecipe layer) {
    if (const auto ranges = parsed_->ranges.find(name); ranges != parsed_->ranges.end())
      fix_scales(ranges->second, calibration_, layer);
    return layer;
  };
  const std::lock_guard lock(parsed_->mutex);
  const auto found = parsed_->layers.find(matching);
  if (found != parsed_->layers.end()) return with_fixed(found->second);
  Json merged = {{"roles", (*json_)["roles"]}, {"gemms", (*json_)["gemms"]}};
  const std::string where = fmt::format("recipe: layer {}", name);
  for (const std::size_t i : matching) merged = merged_layer(merged, JsonReader(entries[i], where));
  LayerRecipe layer = typed_layer(merged, *units_);
  require_units_take(layer, JsonReader(merged, where));
  return with_fixed(parsed_->layers.emplace(std::move(matching), std::move(layer)).first->second);
}

std::vector<std::optional<PolicyChoice>> Recipe::policies(std::string_view name) const {
  std::vector<std::optional<PolicyChoice>> chosen;
  for (const auto& choice : choices_) chosen.push_back(choice.value_or(std::nullopt));
  for (const auto& [match, choices] : patches_) {
    if (!glob_match(match, name)) continue;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (choices[i]) chosen[i] = *choices[i];
    }
  }
  return chosen;
}

void Recipe::require_matches(const std::vector<std::string>& layer_names,
                             const std::string& where) const {
  const Json& layers = (*json_)["layers"];
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string pattern = layers[i]["match"];
    bool matched = layers[i].value("optional", false);
    for (const std::string& name : layer_names) matched = matched || glob_match(pattern, name);
    if (!matched) {
      throw Error(fmt::format("{}: layers[{}].match: '{}' matches no layer; the layers are {}",
                              where, i, pattern, joined(layer_names, ", ")));
    }
  }
  for (const auto& [layer, ranges] : parsed_->ranges) {
    if (std::find(layer_names.begin(), layer_names.end(), layer) != layer_names.end()) continue;
    throw Error(fmt::format("{}: ranges: {}", where, unknown_name("layer", layer, layer_names)));
  }
}

void Recipe::require_policy_matches(const net::Graph& graph, const std::string& where) const {
  std::vector<std::string> names;
  for (const net::Node& node : graph.nodes) names.push_back(node.name);
  const std::vector<PolicySlot>& slots = policy_slots();
  for (std::size_t i = 0; i < patches_.size(); ++i) {
    const auto& [match, choices] = patches_[i];
    std::size_t slot = 0;
    while (slot < choices.size() && (!choices[slot] || slots[slot].of_products)) ++slot;
    // clang 14 captures no structured binding by default.
    const auto matched = [&pattern = match](const auto& name) { return glob_match(pattern, name); };
    const bool matches = (*json_)["layers"][i].value("optional", false) ||
                         std::any_of(names.begin(), names.end(), matched);
    if (slot == choices.size() || matches) continue;
    throw Error(
        fmt::format("{}: layers[{}].{}: '{}' matches only products inside a layer, where a "
                    "policy acts on the layer as a whole; the layers are {}",
                    where, i, slots[slot].key, match, joined(names, ", ")));
  }
}

}  // namespace numemu::policies
