// The JSON Schema of the form: one entry per field, by the type of its member.
// Cold: a negligible share of any run (docs/build.md).
#include <cstdint>
#include <type_traits>

#include "emu/unit/description/json.hpp"
#include "emu/unit/description/json_form.hpp"
#include "formats/storage/json.hpp"

namespace numemu::unit {
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
