#include "policies/recipe/roles.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "policies/recipe/role_json.hpp"

namespace numemu::policies {

namespace {

/// The JSON of a role names parts of it.
bool is_split(const Json& role, const RoleRow& row) {
  return row.splits() && role.is_object() &&
         std::ranges::any_of(row.parts, [&](const RoleRow::Part& part) {
           return role.contains(std::string(part.key));
         });
}
bool is_split(const std::string& name, const Json& role) { return is_split(role, role_row(name)); }

Json canonical_role(const JsonReader& role, const RoleRow& row) {
  const bool float32 = stays_float32(role);
  if (const std::optional<ZapMask> zap = read_zap(role, row.name())) {
    Json out = float32 ? Json{{"format", nullptr}} : role_json(read_role(role, row));
    out["mask"] = to_string(at(role.member("mask"), [&] { return with_digest(*zap); }));
    return out;
  }
  const std::optional<MaskPolicy> mask = read_mask(role, row.name());
  if (float32 && !mask) return Json();
  Json out = float32 ? Json{{"format", nullptr}} : role_json(read_role(role, row));
  out["mask"] = mask ? Json(to_string(*mask)) : Json();
  return out;
}

std::optional<RolePolicy> typed_role(const Json& role, const RoleRow& row) {
  if (stays_float32(JsonReader(role, "recipe"))) return std::nullopt;
  return read_role(JsonReader(role, "recipe"), row);
}

}  // namespace

Json canonical_roles(const JsonReader& roles) {
  if (!roles.is_null()) roles.require_keys(role_names());
  Json out;
  for (const RoleRow& row : role_table()) {
    const std::string name = row.name();
    const JsonReader role = roles.member(name);
    if (is_split(role.value(), row)) {
      std::vector<std::string> parts;
      for (const RoleRow::Part& part : row.parts) parts.emplace_back(part.key);
      role.require_keys(parts);
      for (const std::string& part : parts)
        out[name][part] = canonical_role(role.member(part), row);
    } else if (!row.optional || (roles.value().is_object() && roles.has(name))) {
      out[name] = canonical_role(role, row);
    }
  }
  return out;
}

void read_roles(const Json& roles, LayerRecipe& layer) {
  for (const RoleRow& row : role_table()) {
    const std::string name = row.name();
    const bool given = roles.contains(name), split = given && is_split(roles[name], row);
    for (const RoleRow::Part& part : row.parts) {
      layer.given[part.part] = given && split == row.splits();
      if (!given) continue;
      const Json& json = split ? roles[name][std::string(part.key)] : roles[name];
      layer.roles[part.part] = typed_role(json, row);
      if (row.masked) layer.masks[part.part] = read_mask(JsonReader(json, "recipe"), name);
    }
  }
  for (const RolePart right : {RolePart::key, RolePart::value}) {
    if (!layer.given[right]) layer.roles[right] = layer.roles[RolePart::activation];
  }
  const std::string vector(net::to_string(net::Role::vector));
  layer.zap = read_zap(JsonReader(roles[vector], "recipe"), vector);
}

Json patched_roles(Json roles, const JsonReader& patch) {
  patch.require_keys(role_names());
  for (const auto& item : patch.value().items()) {
    if (!item.value().is_null()) require_role_object(patch.member(item.key()));
    Json& role = roles[item.key()];
    if (role.is_object() && item.value().is_object() && !is_split(item.key(), role) &&
        !is_split(item.key(), item.value())) {
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
    if (!is_split(item.key(), item.value())) {
      item.value() = with_canonical_names(item.value());
      continue;
    }
    for (auto& part : item.value().items()) part.value() = with_canonical_names(part.value());
  }
  return out;
}

namespace {

void require_weight(const JsonReader& key, const MaskPolicy& mask) {
  if (mask.axis == MaskAxis::batch) key.fail("axis=channel or axis=reduction for a weight");
  if (mask.rule->threshold != nullptr)
    key.fail("a rule of groups, tiles or a share for a weight, not a threshold");
  if (mask.rule->unbiased)
    key.fail("a rule that does not rescale weights: an unbiased estimate needs repeated draws");
  if (mask.rule->span == MaskSpan::tile && mask.axis != MaskAxis::channel)
    key.fail("axis=channel for tiles, which lie across both axes");
}

void require_moving(const JsonReader& key, std::string_view role, const MaskPolicy& mask) {
  const MaskPolicy defaults;
  if (mask.rule->span == MaskSpan::tile)
    key.fail(
        fmt::format("a rule of groups or single elements: tiles are those of weights, not of "
                    "the {}",
                    role));
  if (mask.axis == MaskAxis::reduction)
    key.fail(
        fmt::format("axis=channel{} for the {}: along the flattened depth an element has "
                    "several masks",
                    role == "gradient" ? " or axis=batch" : "", role));
  if (mask.axis == MaskAxis::batch && role != "gradient")
    key.fail("axis=channel: groups along the batch are those of gradients");
  if (mask.repair != defaults.repair || mask.refresh != defaults.refresh)
    key.fail(
        fmt::format("no repair and no refresh: they are those of weights, not of the {}", role));
  if (role != "gradient" && (mask.propagated || mask.history != 0))
    key.fail("no history and no at=input: they are those of gradients");
}

}  // namespace

std::optional<MaskPolicy> read_mask(const JsonReader& role, std::string_view role_name) {
  if (role.is_null()) return std::nullopt;
  const JsonReader key = role.member("mask");
  if (key.is_null()) return std::nullopt;
  if (!key.value().is_string())
    key.fail("a text such as \"greedy(2:4)\", or null, which keeps every element");
  const MaskPolicy mask = at(key, [&] { return parse_mask(key.text("")); });
  if (role_name == "weight") {
    require_weight(key, mask);
  } else if (role_name == "activation" || role_name == "gradient") {
    require_moving(key, role_name, mask);
  } else {
    key.fail(role_name == "vector"
                 ? "zap(FILE) or null: other masks are those of weight, activation and gradient"
                 : "null: masks are those of weight, activation and gradient");
  }
  return mask;
}

std::optional<ZapMask> read_zap(const JsonReader& role, std::string_view role_name) {
  if (role_name != "vector" || role.is_null()) return std::nullopt;
  const JsonReader key = role.member("mask");
  if (!key.value().is_string() || !is_zap_mask(key.text(""))) return std::nullopt;
  return at(key, [&] { return parse_zap_mask(key.text("")); });
}

}  // namespace numemu::policies
