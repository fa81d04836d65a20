#include "policies/recipe/recipe_units.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "emu/unit/description/json.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "policies/recipe/choices.hpp"
#include "policies/recipe/roles.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kDefaultUnit = "neutral.f32.sequential";
constexpr const char* kProducts = "products";
constexpr const char* kProductsDigest = "products_sha256";

/// Of the products as int32, little-endian.
std::string digest_of(const std::vector<std::int32_t>& products) {
  std::string bytes;
  for (const std::int32_t product : products) {
    const auto word = static_cast<std::uint32_t>(product);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(word >> shift & 0xff);
  }
  return sha256_hex(bytes);
}

std::string text_member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

JsonReader unit_of(const JsonReader& gemm) {
  if (!gemm.is_null()) gemm.require_keys({"unit"});
  return gemm.member("unit");
}

}  // namespace

Json RecipeUnits::read_described(Json object, const std::string& where,
                                 const std::string& subfolder) {
  const std::string digest = text_member(object, kProductsDigest);
  if (object.is_object()) object.erase(kProductsDigest);
  const auto folder = std::filesystem::path(folder_) / subfolder;
  unit::UnitDescription description =
      unit::parse_description(object.dump(), where, folder.string());
  const auto products_file = std::filesystem::path(subfolder) / text_member(object, kProducts);
  Json canonical =
      parse_json(unit::description_json(description, products_file.generic_string()), where);
  if (description.products != nullptr) {
    canonical[kProductsDigest] = digest_of(*description.products);
    if (!digest.empty() && canonical[kProductsDigest] != digest) {
      throw Error(fmt::format("{}: {}: expected the table with the digest {}, found {}", where,
                              kProducts, digest, canonical[kProductsDigest].get<std::string>()));
    }
  }
  auto& slot = described_[canonical.dump()];
  if (slot == nullptr) slot = at(where, [&] { return unit::make_unit(std::move(description)); });
  return canonical;
}

Json RecipeUnits::read(const JsonReader& unit) {
  if (unit.value().is_object()) return read_described(unit.value(), unit.where(), "");
  const std::string text = unit.text(kDefaultUnit);
  return at(unit, [&]() -> Json {
    if (!text.ends_with(".json")) return unit::find_unit(text).row().name;
    const std::filesystem::path path(text);
    const std::string file = (std::filesystem::path(folder_) / path).string();
    return read_described(parse_json(read_text(file), file), file, path.parent_path().string());
  });
}

std::shared_ptr<const unit::Unit> RecipeUnits::find(const Json& canonical) const {
  if (canonical.is_object()) return described_.at(canonical.dump());
  // Units of the catalogue are never freed: the pointer owns nothing.
  return {std::shared_ptr<void>(), &unit::find_unit(canonical.get<std::string>())};
}

Json canonical_gemms(const JsonReader& gemms, RecipeUnits& units) {
  if (!gemms.is_null()) gemms.require_keys(kGemms);
  Json out;
  for (const std::string& kind : kGemms)
    out[kind] = {{"unit", units.read(unit_of(gemms.member(kind)))}};
  return out;
}

Json canonical_gemm_patches(const JsonReader& gemms, RecipeUnits& units) {
  gemms.require_keys(kGemms);
  Json out = Json::object();
  for (const auto& item : gemms.value().items()) {
    const JsonReader unit = unit_of(gemms.member(item.key()));
    out[item.key()] = item.value();
    if (!unit.is_null()) out[item.key()]["unit"] = units.read(unit);
  }
  return out;
}

void read_gemms(const Json& canonical, const RecipeUnits& units, LayerRecipe& layer) {
  const auto unit = [&](const std::string& kind) { return units.find(canonical[kind]["unit"]); };
  layer.fprop = unit(kGemms[0]);
  layer.dgrad = unit(kGemms[1]);
  layer.wgrad = unit(kGemms[2]);
}

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
