// A recipe: the numerics of a whole network, as data (schema version 1).
#include "policies/recipe/recipe.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/error.hpp"
#include "formats/format.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/layers.hpp"
#include "policies/recipe/roles.hpp"

namespace numemu::policies {
namespace {

constexpr std::int64_t kLargestSeed = std::int64_t{1} << 53;  // JSON numbers are doubles

}  // namespace

std::string RolePolicy::describe() const {
  return fmt::format("{} {} {} {}/{}", format->name, to_string(rounding), to_string(overflow),
                     scale, granularity == Granularity::tensor ? "tensor" : "channel");
}

const std::optional<RolePolicy>& LayerRecipe::role(net::Role role, net::GemmKind kind) const {
  if (role == net::Role::weight) return weight;
  if (role == net::Role::activation) return activation;
  return kind == net::GemmKind::dgrad ? gradient_dgrad : gradient_wgrad;
}

const std::string& LayerRecipe::unit(net::GemmKind kind) const {
  return kind == net::GemmKind::dgrad   ? dgrad_unit
         : kind == net::GemmKind::wgrad ? wgrad_unit
                                        : fprop_unit;
}

Recipe::Recipe() { *this = parse(Json{{"numemu_recipe", 1}}, "recipe"); }

Recipe Recipe::parse_text(const std::string& text, const std::string& where) {
  return parse(parse_json(text, where), where);
}

Recipe Recipe::parse(const Json& json, const std::string& where) {
  const JsonReader root(json, where);
  root.require_keys({"numemu_recipe", "seed", "roles", "gemms", "update", "calibrate", "layers"});
  if (!root.has("numemu_recipe")) root.fail("a key 'numemu_recipe' with the schema version 1");
  if (root.member("numemu_recipe").value() != 1)
    root.member("numemu_recipe").fail("schema version 1");

  Recipe recipe(0);
  recipe.seed_ = static_cast<std::uint64_t>(root.member("seed").integer(0, 0, kLargestSeed));
  Json out = {{"numemu_recipe", 1}, {"seed", recipe.seed_}};
  out["roles"] = canonical_roles(root.member("roles"));
  out["gemms"] = canonical_gemms(root.member("gemms"));
  require_units_take(out, root);

  const JsonReader update = root.member("update");
  if (!update.is_null()) update.require_keys({"optimizer", "master", "rounding", "loss_scale"});
  out["update"] = {
      {"optimizer", update.member("optimizer").one_of("adam", {"adam", "sgd"}, "optimizer")},
      {"master", update.member("master").one_of("float32", {"float32"}, "master format")},
      {"rounding", update.member("rounding").one_of("rne", {"rne"}, "update rounding")},
      {"loss_scale", update.member("loss_scale").one_of("none", {"none"}, "loss scale policy")}};
  const JsonReader calibrate = root.member("calibrate");
  if (!calibrate.is_null()) calibrate.require_keys({"rule", "samples"});
  recipe.calibration_samples_ = calibrate.member("samples").integer(512, 1, 512);
  out["calibrate"] = {
      {"rule", calibrate.member("rule").one_of("absmax", {"absmax"}, "calibration rule")},
      {"samples", recipe.calibration_samples_}};
  out["layers"] = canonical_layers(out, root.member("layers"));
  recipe.json_ = std::make_shared<const Json>(std::move(out));
  return recipe;
}

LayerRecipe Recipe::layer(std::string_view name) const {
  Json merged = {{"roles", (*json_)["roles"]}, {"gemms", (*json_)["gemms"]}};
  for (const Json& entry : (*json_)["layers"]) {
    if (glob_match(entry["match"].get<std::string>(), name)) {
      merged = merged_layer(merged, JsonReader(entry, fmt::format("recipe: layer {}", name)));
    }
  }
  const Json& roles = merged["roles"];
  const auto role = [&](const Json& value) -> std::optional<RolePolicy> {
    if (value.is_null()) return std::nullopt;
    return read_role(JsonReader(value, "recipe"));
  };
  const Json& gradient = roles["gradient"];
  const bool split = gradient.is_object() && gradient.contains("dgrad");
  LayerRecipe layer;
  layer.weight = role(roles["weight"]);
  layer.activation = role(roles["activation"]);
  layer.gradient_dgrad = role(split ? gradient["dgrad"] : gradient);
  layer.gradient_wgrad = role(split ? gradient["wgrad"] : gradient);
  layer.fprop_unit = merged["gemms"]["fprop"]["unit"];
  layer.dgrad_unit = merged["gemms"]["dgrad"]["unit"];
  layer.wgrad_unit = merged["gemms"]["wgrad"]["unit"];
  return layer;
}

void Recipe::require_matches(const std::vector<std::string>& layer_names,
                             const std::string& where) const {
  const Json& layers = (*json_)["layers"];
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string pattern = layers[i]["match"];
    bool matched = false;
    for (const std::string& name : layer_names) matched = matched || glob_match(pattern, name);
    if (!matched) {
      throw Error(fmt::format("{}: layers[{}].match: '{}' matches no layer; the layers are {}",
                              where, i, pattern, fmt::join(layer_names, ", ")));
    }
  }
}

bool glob_match(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*') {
    return glob_match(pattern.substr(1), name) ||
           (!name.empty() && glob_match(pattern, name.substr(1)));
  }
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) &&
         glob_match(pattern.substr(1), name.substr(1));
}

}  // namespace numemu::policies
