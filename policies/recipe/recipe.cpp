// A recipe: the numerics of a whole network, as data (schema version 1).
#include "policies/recipe/recipe.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "emu/unit/unit.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"
#include "policies/recipe/json_reader.hpp"
#include "policies/scale_rule.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kDefaultUnit = "neutral.f32.sequential";
constexpr std::int64_t kLargestSeed = std::int64_t{1} << 53;  // JSON numbers are doubles
constexpr int kWidestExponent = 8;
constexpr int kWidestOperand = 16;  // stored bits of a quantized role

const std::vector<std::string> kRoleKeys = {"format",      "rounding", "overflow", "scale",
                                            "granularity", "axis",     "mask"};
const std::vector<std::string> kQuantizedRoles = {"weight", "activation", "gradient"};
const std::vector<std::string> kFloat32Roles = {"vector", "output", "saved", "state", "exchange"};
const std::vector<std::string> kGemms = {"fprop", "dgrad", "wgrad"};

std::vector<std::string> role_names() {
  std::vector<std::string> names = kQuantizedRoles;
  names.insert(names.end(), kFloat32Roles.begin(), kFloat32Roles.end());
  return names;
}

/// Runs `read` and puts the key in front of an Error from below (an unknown format, rounding...).
template <class Read>
auto at(const JsonReader& key, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", key.where(), error.what()));
  }
}

RolePolicy read_role(const JsonReader& role) {
  role.require_keys(kRoleKeys);
  RolePolicy policy;
  const JsonReader format = role.member("format");
  if (format.is_null()) role.fail("a key 'format'");
  policy.format = at(format, [&] { return &find_format(format.text("")); });
  if (policy.format->bits > kWidestOperand) {
    format.fail(fmt::format("a format of at most {} bits, not {} (null is float32, not quantized)",
                            kWidestOperand, policy.format->name));
  }
  if (policy.format->exponent_bits > kWidestExponent) {
    format.fail(fmt::format("a format of at most {} exponent bits, as float32 has, not {}",
                            kWidestExponent, policy.format->name));
  }
  if (!policy.format->has_zero()) format.fail("a format with a zero, not " + policy.format->name);
  const JsonReader rounding = role.member("rounding");
  policy.rounding = at(rounding, [&] { return parse_rounding(rounding.text("rne")); });
  const JsonReader overflow = role.member("overflow");
  policy.overflow = at(overflow, [&] { return parse_overflow(overflow.text("saturate")); });
  const JsonReader scale = role.member("scale");
  policy.scale = at(scale, [&] { return std::string(find_scale_rule(scale.text("absmax")).name); });
  if (find_scale_rule(policy.scale).fills_range && largest_value(*policy.format) > kWidestFilled) {
    scale.fail(fmt::format(
        "the scale rule none for {}: {} would fill its range, and products would leave float32",
        policy.format->name, policy.scale));
  }
  policy.granularity =
      role.member("granularity").one_of("tensor", {"tensor", "channel"}, "granularity") == "tensor"
          ? Granularity::tensor
          : Granularity::channel;
  role.member("axis").one_of("channel", {"channel"}, "block axis");
  const JsonReader mask = role.member("mask");
  if (!mask.is_null())
    throw Error(fmt::format("{}: unknown mask '{}' (there are none; null keeps every element)",
                            mask.where(), mask.value().dump()));
  return policy;
}

Json role_json(const RolePolicy& policy) {
  return {{"format", policy.format->name},
          {"rounding", to_string(policy.rounding)},
          {"overflow", to_string(policy.overflow)},
          {"scale", policy.scale},
          {"granularity", policy.granularity == Granularity::tensor ? "tensor" : "channel"},
          {"axis", "channel"},
          {"mask", nullptr}};
}

/// null, {"format": null} and {"format": "float32"} all say: not quantized.
bool stays_float32(const JsonReader& role) {
  if (role.is_null()) return true;
  if (!role.has("format")) return false;
  const JsonReader format = role.member("format");
  return format.is_null() || format.value() == "float32";
}

/// A role of the base recipe or of a merged layer, canonical.
Json canonical_role(const JsonReader& role, bool activation) {
  if (stays_float32(role)) return nullptr;
  const RolePolicy policy = read_role(role);
  if (activation && policy.granularity == Granularity::channel) {
    role.member("granularity")
        .fail(
            "'tensor': a scale per activation channel runs along the reduction axis and cannot be "
            "applied after the unit");
  }
  return role_json(policy);
}

Json canonical_gradient(const JsonReader& role) {
  if (role.has("dgrad") || role.has("wgrad")) {
    role.require_keys({"dgrad", "wgrad"});
    return {{"dgrad", canonical_role(role.member("dgrad"), true)},
            {"wgrad", canonical_role(role.member("wgrad"), true)}};
  }
  return canonical_role(role, true);
}

Json canonical_roles(const JsonReader& roles) {
  if (!roles.is_null()) roles.require_keys(role_names());
  Json out = {{"weight", canonical_role(roles.member("weight"), false)},
              {"activation", canonical_role(roles.member("activation"), true)},
              {"gradient", canonical_gradient(roles.member("gradient"))}};
  for (const std::string& name : kFloat32Roles) {
    const JsonReader role = roles.member(name);
    if (!stays_float32(role)) {
      throw Error(fmt::format(
          "{}: no policy quantizes the role '{}' (there are: {}); null keeps it float32",
          role.where(), name, fmt::join(kQuantizedRoles, ", ")));
    }
    out[name] = nullptr;
  }
  return out;
}

Json canonical_gemms(const JsonReader& gemms) {
  if (!gemms.is_null()) gemms.require_keys(kGemms);
  Json out;
  for (const std::string& kind : kGemms) {
    const JsonReader gemm = gemms.member(kind);
    if (!gemm.is_null()) gemm.require_keys({"unit"});
    const JsonReader name = gemm.member("unit");
    if (name.value().is_object())
      throw Error(name.where() + ": described units do not exist (name a unit of the table)");
    out[kind] = {
        {"unit", at(name, [&] { return unit::find_unit(name.text(kDefaultUnit)).row().name; })}};
  }
  return out;
}

/// Every operand format of the layer must be one its unit takes.
void require_units_take(const Json& layer, const JsonReader& where) {
  const auto check = [&](const Json& role, const char* kind) {
    if (!role.is_object() || !role.contains("format")) return;
    at(where.member("gemms").member(kind).member("unit"), [&] {
      unit::find_unit(layer["gemms"][kind]["unit"].get<std::string>())
          .require_operand(find_format(role["format"].get<std::string>()));
      return 0;
    });
  };
  const Json& roles = layer["roles"];
  for (const char* kind : {"fprop", "dgrad"}) check(roles["weight"], kind);
  for (const char* kind : {"fprop", "wgrad"}) check(roles["activation"], kind);
  for (const char* kind : {"dgrad", "wgrad"}) {
    const Json& gradient = roles["gradient"];
    check(gradient.is_object() && gradient.contains(kind) ? gradient[kind] : gradient, kind);
  }
}

bool is_split(const Json& role) {
  return role.is_object() && (role.contains("dgrad") || role.contains("wgrad"));
}

/// Key by key over a quantized role; a float32 role and a gradient split otherwise are replaced.
void merge_role(Json& role, const Json& patch) {
  if (!role.is_object() || !patch.is_object() || is_split(role) || is_split(patch)) {
    role = patch;
  } else {
    for (const auto& item : patch.items()) role[item.key()] = item.value();
  }
}

/// The patch of a layers entry laid over {"roles", "gemms"} and made canonical.
Json merged_layer(const Json& base, const JsonReader& entry) {
  Json merged = {{"roles", base["roles"]}, {"gemms", base["gemms"]}};
  if (entry.has("roles")) {
    const JsonReader roles = entry.member("roles");
    roles.require_keys(role_names());
    for (const auto& item : roles.value().items()) {
      if (!item.value().is_null() && !item.value().is_object())
        roles.member(item.key()).fail("an object or null");
      merge_role(merged["roles"][item.key()], item.value());
    }
  }
  if (entry.has("gemms")) {
    const JsonReader gemms = entry.member("gemms");
    gemms.require_keys(kGemms);
    for (const auto& item : gemms.value().items()) merged["gemms"][item.key()] = item.value();
  }
  const Json raw = merged;
  const JsonReader reader = entry.replaced_by(raw);
  merged["roles"] = canonical_roles(reader.member("roles"));
  merged["gemms"] = canonical_gemms(reader.member("gemms"));
  require_units_take(merged, reader);
  return merged;
}

/// Aliases of formats, roundings and units replaced by their names, in a patch that has been
/// checked.
Json with_canonical_names(Json patch) {
  for (auto& item : patch.items()) {
    Json& value = item.value();
    if (value.is_object()) value = with_canonical_names(value);
    if (!value.is_string()) continue;
    if (item.key() == "format") value = find_format(value.get<std::string>()).name;
    if (item.key() == "rounding") value = to_string(parse_rounding(value.get<std::string>()));
    if (item.key() == "unit") value = unit::find_unit(value.get<std::string>()).row().name;
  }
  return patch;
}

Json canonical_layers(const Json& base, const JsonReader& layers) {
  Json out = Json::array();
  if (layers.is_null()) return out;
  if (!layers.value().is_array()) layers.fail("an array");
  for (std::size_t i = 0; i < layers.value().size(); ++i) {
    const JsonReader entry = layers.element(i);
    entry.require_keys({"match", "roles", "gemms"});
    const JsonReader match = entry.member("match");
    if (!match.value().is_string()) match.fail("a glob on layer names");
    merged_layer(base, entry);  // checks the entry against the base; entries that overlap are
                                // checked again per layer
    Json canonical = {{"match", match.text("")}};
    if (entry.has("roles")) canonical["roles"] = with_canonical_names(entry.value()["roles"]);
    if (entry.has("gemms")) canonical["gemms"] = with_canonical_names(entry.value()["gemms"]);
    out.push_back(std::move(canonical));
  }
  return out;
}

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
