// Writes the JSON form: the canonical one, and templates with every key.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/description/json.hpp"
#include <algorithm>
#include <filesystem>
#include "emu/unit/description/check.hpp"
#include "emu/unit/description/json_form.hpp"
#include "emu/unit/description/products.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"
#include <cstdint>
#include <type_traits>

namespace numemu::unit {
namespace {

Json json_of(int number) { return number; }
Json json_of(bool flag) { return flag; }
Json json_of(const std::optional<int>& number) { return number ? Json(*number) : Json(); }
Json json_of(const Format* format) { return format != nullptr ? Json(format->name) : Json(); }
Json json_of(const Sparsity& sparsity) {
  return sparsity == Sparsity{} ? Json() : Json(text_of(sparsity));
}
template <class T>
Json json_of(const T& field) {
  return text_of(field);
}

/// The fields that `written` chooses, in a fixed order.
template <class Written>
std::string json_text(const UnitDescription& u, const std::string& products_file,
                      const Written& written) {
  Json out = {{kVersionKey, kVersion}};
  for_each_field(u, [&](const std::string& key, const auto& field) {
    if (!written(key)) return;
    const auto [object, member] = object_and_member(key);
    (object.empty() ? out : out[object])[member] = json_of(field);
  });
  if (u.products != nullptr) out[kProductsKey] = products_file;
  return out.dump(2) + "\n";
}

}  // namespace

std::string description_json(const UnitDescription& u, const std::string& products_file) {
  check_description(u);
  const std::vector<std::string> changed = changed_fields(u);
  return json_text(u, products_file, [&](const std::string& key) {
    if (key == "nan_code") return u.nan_code != usual_nan(u);
    return key == "core" || key == "k" || key == "group" ||
           (key == kFractionKey && u.core == CoreKind::fused) ||
           std::find(changed.begin(), changed.end(), key) != changed.end();
  });
}

std::string description_template(CoreKind core) {
  UnitDescription u;
  u.name = "my.unit";
  u.core = core;
  const bool integer = is_integer_core(u);
  switch (core) {
    case CoreKind::fused:
      u.a = u.b = &find_format("float8_e4m3fn");
      u.k = u.group = 32;
      u.alignment.fraction_bits = 25;
      break;
    case CoreKind::integer:
      u.a = u.b = &find_format("int8");
      break;
    case CoreKind::xnor:
      u.a = u.b = &find_format("sign1");
      break;
    case CoreKind::table:
      u.a = u.b = &find_format("int4");
      u.products = std::make_shared<const std::vector<std::int32_t>>(1 << 8);
      break;
    case CoreKind::tree:
      u.k = u.group = 8;
      break;
    case CoreKind::chain:
    case CoreKind::exact:
      break;
  }
  if (!integer) u.accumulator.format = &find_format("float32");
  u.nan_code = usual_nan(u);
  check_description(u);
  return json_text(u, "products.npy", [&](const std::string& key) { return applies(u, key); });
}

void write_description(const UnitDescription& u, const std::string& path) {
  std::filesystem::path products = path;
  products.replace_extension(".products.npy");
  const std::string json = description_json(u, products.filename().string());
  if (u.products != nullptr) write_products(u, products.string());
  write_atomically(path, {json});
}

namespace {

Json text_schema(const char* description) {
  return {{"type", "string"}, {"description", description}};
}
Json or_null(Json schema) {
  schema["type"] = Json::array({schema["type"], "null"});
  return schema;
}

Json schema_of(const std::string&) { return text_schema("text without spaces"); }
Json schema_of(const Format*) {
  return or_null(text_schema("a format: a name, an alias or a descriptor such as e8m13"));
}
Json schema_of(int) { return {{"type", "integer"}}; }
Json schema_of(bool) { return {{"type", "boolean"}}; }
Json schema_of(const std::optional<int>&) { return or_null({{"type", "integer"}}); }
Json schema_of(const Rounding&) {
  return text_schema("rne, rna, rtz, rup, rdn, rodd; sr(8), sr(8,a) where draws are defined");
}
Json schema_of(RoundingMode) { return text_schema("rtz, rne, rodd or rdn"); }
Json schema_of(Overflow) {
  return {{"type", "string"}, {"enum", Json::array({"saturate", "propagate", "ieee"})}};
}
Json schema_of(std::uint64_t) {
  Json schema = text_schema("a code; the quiet NaN of D where none is given");
  schema["pattern"] = "^0x[0-9a-fA-F]{1,16}$";
  return schema;
}
Json schema_of(const Sparsity&) {
  Json schema = or_null(text_schema("N kept of M"));
  schema["pattern"] = "^[0-9]+:[0-9]+$";
  return schema;
}
template <Named T>
Json schema_of(T) {
  Json names = Json::array();
  for (const std::string_view name : names_of(T{})) names.push_back(std::string(name));
  return {{"type", "string"}, {"enum", names}};
}

/// What a missing key means; nothing where it depends on others.
Json default_of(int number) { return number; }
Json default_of(bool flag) { return flag; }
Json default_of(const std::optional<int>& number) { return number ? Json(*number) : Json(); }
Json default_of(const Format*) { return {}; }
Json default_of(const Sparsity&) { return {}; }
template <class T>
Json default_of(const T& field) {
  return text_of(field);
}

}  // namespace

std::string description_schema() {
  Json properties;
  properties[kVersionKey] = {{"const", kVersion}, {"description", "the version of the form"}};
  const UnitDescription fresh;
  for_each_field(fresh, [&](const std::string& key, const auto& field) {
    Json schema = schema_of(field);
    const bool depends = key == "nan_code" || key == "core" || key == kFractionKey;
    if (!depends) schema["default"] = default_of(field);
    const auto [object, member] = object_and_member(key);
    if (object.empty()) {
      properties[member] = schema;
      return;
    }
    Json& nested = properties[object];
    if (nested.is_null()) nested = {{"type", "object"}, {"additionalProperties", false}};
    nested["properties"][member] = schema;
  });
  properties[kProductsKey] = text_schema("core table: a .npy file beside this one");
  const Json fused = {{"properties", {{"core", {{"const", "fused"}}}}}};
  const Json alignment = {
      {"required", Json::array({"alignment"})},
      {"properties", {{"alignment", {{"required", Json::array({"fraction_bits"})}}}}}};
  const Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                       {"title", "A matrix unit of numemu"},
                       {"type", "object"},
                       {"additionalProperties", false},
                       {"required", Json::array({kVersionKey, "core"})},
                       {"properties", properties},
                       {"if", fused},
                       {"then", alignment}};
  return schema.dump(2) + "\n";
}

}  // namespace numemu::unit
