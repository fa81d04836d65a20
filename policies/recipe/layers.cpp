// The layers entries of a recipe: patches laid over the base, later ones winning.
#include "policies/recipe/layers.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "emu/unit/unit.hpp"
#include "formats/format.hpp"
#include "policies/recipe/roles.hpp"

namespace numemu::policies {
namespace {

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

}  // namespace

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

}  // namespace numemu::policies
