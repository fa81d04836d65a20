// Cold: a negligible share of any run (docs/build.md).
#include "policies/recipe/layers.hpp"

#include "policies/error_at.hpp"
#include "policies/recipe/choices.hpp"
#include "policies/recipe/roles.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::policies {
namespace {

/// The unit of a patch, null or absent for the default one.
Json unit_of(const Json& gemm) {
  return gemm.is_object() && gemm.contains("unit") ? gemm["unit"] : Json();
}

}  // namespace

Json merged_layer(const Json& base, const JsonReader& entry) {
  Json merged = {{"roles", base["roles"]}, {"gemms", base["gemms"]}};
  if (entry.has("roles")) {
    const Json patched = patched_roles(base["roles"], entry.member("roles"));
    merged["roles"] = canonical_roles(entry.member("roles").replaced_by(patched));
  }
  if (entry.has("gemms")) {
    static const Json kDefault = [] {
      RecipeUnits none("");
      return none.read(JsonReader(Json(), "recipe"));
    }();
    for (const auto& item : entry.value()["gemms"].items()) {
      const Json unit = unit_of(item.value());
      merged["gemms"][item.key()]["unit"] = unit.is_null() ? kDefault : unit;
    }
  }
  return merged;
}

LayerRecipe typed_layer(const Json& merged, const RecipeUnits& units) {
  LayerRecipe layer;
  read_roles(merged["roles"], layer);
  read_gemms(merged["gemms"], units, layer);
  return layer;
}

void require_units_take(const LayerRecipe& layer, const JsonReader& where) {
  for (std::size_t i = 0; i < kGemms.size(); ++i) {
    at(where.member("gemms").member(kGemms[i]).member("unit"),
       [&] { require_operands(layer, static_cast<net::GemmKind>(i), /*float32_too=*/false); });
  }
}

Json canonical_layers(const Json& base, const JsonReader& layers, RecipeUnits& units) {
  Json out = Json::array();
  if (layers.is_null()) return out;
  if (!layers.value().is_array()) layers.fail("an array");
  for (std::size_t i = 0; i < layers.value().size(); ++i) {
    const JsonReader given = layers.element(i);
    std::vector<std::string> keys = {"match", "optional", "roles", "gemms"};
    for (const PolicySlot& slot : policy_slots()) {
      if (slot.of_layers) keys.emplace_back(slot.object());
    }
    given.require_keys(keys);
    const Json moved = with_role_keys_moved(given, {"saved"});
    const JsonReader entry = given.replaced_by(moved);
    if (entry.has("update") && !entry.member("update").is_null())
      entry.member("update").require_keys({"rule"});
    const JsonReader match = entry.member("match");
    if (!match.value().is_string()) match.fail("a glob on layer names");
    Json patch = {{"match", match.text("")}};
    const JsonReader optional = entry.member("optional");
    if (!optional.is_null() && !optional.value().is_boolean()) optional.fail("true or false");
    if (!optional.is_null() && optional.value().get<bool>()) patch["optional"] = true;
    if (entry.has("roles")) patch["roles"] = entry.value()["roles"];
    if (entry.has("gemms")) patch["gemms"] = canonical_gemm_patches(entry.member("gemms"), units);
    write_choices(read_choices(entry), /*explicit_none=*/true, patch);
    // Against the base; entries that overlap are checked again per layer.
    const Json merged = merged_layer(base, entry.replaced_by(patch));
    require_units_take(typed_layer(merged, units), entry);
    if (entry.has("roles")) patch["roles"] = canonical_role_patches(patch["roles"]);
    out.push_back(std::move(patch));
  }
  return out;
}

}  // namespace numemu::policies
