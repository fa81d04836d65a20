#include "policies/recipe/roles.hpp"

#include "policies/recipe/error_at.hpp"
#include "policies/recipe/role_json.hpp"
#include "policies/recipe/role_mask.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kGradient = "gradient";
const std::vector<std::string> kSplit = {"dgrad", "wgrad"};

bool is_split(const Json& role) {
  return role.is_object() && (role.contains(kSplit[0]) || role.contains(kSplit[1]));
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
    if (schema.name == kGradient && is_split(role.value())) {
      role.require_keys(kSplit);
      for (const std::string& kind : kSplit)
        out[kGradient][kind] = canonical_role(role.member(kind), schema);
    } else if (!schema.optional || (roles.value().is_object() && roles.has(schema.name))) {
      out[schema.name] = canonical_role(role, schema);
    }
  }
  return out;
}

void read_roles(const Json& roles, LayerRecipe& layer) {
  const auto role = [&](const char* name) { return typed_role(roles[name], role_schema(name)); };
  const auto apart = [&](const char* name) { return roles.contains(name); };
  const Json& gradient = roles[kGradient];
  const auto part = [&](const std::string& kind) {
    return typed_role(is_split(gradient) ? gradient[kind] : gradient, role_schema(kGradient));
  };
  layer.weight = role("weight");
  layer.activation = role("activation");
  layer.gradient_dgrad = part(kSplit[0]);
  layer.gradient_wgrad = part(kSplit[1]);
  const auto mask = [&](const Json& part_of, const char* name) {
    return read_mask(JsonReader(part_of, "recipe"), name);
  };
  layer.weight_mask = mask(roles["weight"], "weight");
  layer.activation_mask = mask(roles["activation"], "activation");
  layer.gradient_dgrad_mask = mask(is_split(gradient) ? gradient[kSplit[0]] : gradient, kGradient);
  layer.gradient_wgrad_mask = mask(is_split(gradient) ? gradient[kSplit[1]] : gradient, kGradient);
  layer.zap = read_zap(JsonReader(roles["vector"], "recipe"), "vector");
  layer.vector = role("vector");
  layer.output = role("output");
  layer.saved = role("saved");
  layer.state = role("state");
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
