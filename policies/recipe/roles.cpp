#include "policies/recipe/roles.hpp"

#include <algorithm>

#include "policies/recipe/error_at.hpp"
#include "policies/recipe/role_json.hpp"
#include "policies/recipe/role_mask.hpp"

namespace numemu::policies {
namespace {

constexpr const char *kGradient = "gradient", *kState = "state";
const std::vector<std::string> kProducts = {"dgrad", "wgrad"}, kMoments = {"first", "second"};

/// The parts that a role may be split into.
std::vector<std::string> parts_of(std::string_view role) {
  return role == kGradient ? kProducts : role == kState ? kMoments : std::vector<std::string>{};
}

bool has_any(const Json& role, const std::vector<std::string>& parts) {
  return role.is_object() &&
         std::ranges::any_of(parts, [&](const std::string& part) { return role.contains(part); });
}
bool is_split(const Json& role) { return has_any(role, kProducts) || has_any(role, kMoments); }

/// A part of a role, the whole where it is not split.
const Json& part_of(const Json& role, const std::string& part) {
  return is_split(role) ? role[part] : role;
}

Json canonical_role(const JsonReader& role, const RoleSchema& schema) {
  const bool float32 = stays_float32(role);
  if (const std::optional<ZapMask> zap = read_zap(role, schema.name)) {
    Json out = float32 ? Json{{"format", nullptr}} : role_json(read_role(role, schema));
    out["mask"] = to_string(at(role.member("mask"), [&] { return with_digest(*zap); }));
    return out;
  }
  const std::optional<MaskPolicy> mask = read_mask(role, schema.name);
  if (float32 && !mask) return Json();
  Json out = float32 ? Json{{"format", nullptr}} : role_json(read_role(role, schema));
  out["mask"] = mask ? Json(to_string(*mask)) : Json();
  return out;
}

std::optional<RolePolicy> typed_role(const Json& role, const RoleSchema& schema) {
  if (stays_float32(JsonReader(role, "recipe"))) return std::nullopt;
  return read_role(JsonReader(role, "recipe"), schema);
}

}  // namespace

std::vector<std::string> role_names() {
  std::vector<std::string> names;
  for (const RoleSchema& schema : role_schemas()) names.push_back(schema.name);
  return names;
}

Json canonical_roles(const JsonReader& roles) {
  if (!roles.is_null()) roles.require_keys(role_names());
  Json out;
  for (const RoleSchema& schema : role_schemas()) {
    const JsonReader role = roles.member(schema.name);
    if (const std::vector<std::string> parts = parts_of(schema.name);
        has_any(role.value(), parts)) {
      role.require_keys(parts);
      for (const std::string& part : parts)
        out[schema.name][part] = canonical_role(role.member(part), schema);
    } else if (!schema.optional || (roles.value().is_object() && roles.has(schema.name))) {
      out[schema.name] = canonical_role(role, schema);
    }
  }
  return out;
}

void read_roles(const Json& roles, LayerRecipe& layer) {
  const auto role = [&](const char* name) { return typed_role(roles[name], role_schema(name)); };
  const auto apart = [&](const char* name) { return roles.contains(name); };
  const auto part = [&](const char* name, const std::string& of) {
    return typed_role(part_of(roles[name], of), role_schema(name));
  };
  layer.weight = role("weight");
  layer.activation = role("activation");
  layer.gradient_dgrad = part(kGradient, kProducts[0]);
  layer.gradient_wgrad = part(kGradient, kProducts[1]);
  const auto mask = [&](const Json& given, const char* name) {
    return read_mask(JsonReader(given, "recipe"), name);
  };
  layer.weight_mask = mask(roles["weight"], "weight");
  layer.activation_mask = mask(roles["activation"], "activation");
  layer.gradient_dgrad_mask = mask(part_of(roles[kGradient], kProducts[0]), kGradient);
  layer.gradient_wgrad_mask = mask(part_of(roles[kGradient], kProducts[1]), kGradient);
  layer.zap = read_zap(JsonReader(roles["vector"], "recipe"), "vector");
  layer.vector = role("vector");
  layer.output = role("output");
  layer.saved = role("saved");
  layer.state = part(kState, kMoments[0]);
  layer.second_state = part(kState, kMoments[1]);
  layer.state_split = is_split(roles[kState]);
  layer.exchange = role("exchange");
  if (apart("embedding")) layer.embedding = role("embedding");
  layer.key_apart = apart("key");
  layer.value_apart = apart("value");
  layer.key = layer.key_apart ? role("key") : layer.activation;
  layer.value = layer.value_apart ? role("value") : layer.activation;
}

Json patched_roles(Json roles, const JsonReader& patch) {
  patch.require_keys(role_names());
  for (const auto& item : patch.value().items()) {
    if (!item.value().is_null()) require_role_object(patch.member(item.key()));
    Json& role = roles[item.key()];
    if (role.is_object() && item.value().is_object() && !is_split(role) &&
        !is_split(item.value())) {
      patch_role(role, item.value());
    } else {
      role = item.value();
    }
  }
  return roles;
}

Json canonical_role_patches(const Json& patch) {
  Json out = patch;
  for (auto& item : out.items()) {
    if (!is_split(item.value())) {
      item.value() = with_canonical_names(item.value());
      continue;
    }
    for (auto& part : item.value().items()) part.value() = with_canonical_names(part.value());
  }
  return out;
}

}  // namespace numemu::policies
