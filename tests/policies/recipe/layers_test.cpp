// Layers entries: patches over the base, canonical text, checks against the base.
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "policies/recipe/recipe_units.hpp"
#include "policies/recipe/roles.hpp"
#include "tests/catch.hpp"

namespace layers_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;

namespace {

/// {"roles", "gemms"} of a base whose weights are int8, or of `roles`.
Json base_of(RecipeUnits& units, const std::string& roles = R"({"weight": {"format": "int8"}})") {
  const Json json = parse_json(R"({"roles": )" + roles + "}", "r.json"), none;
  return {{"roles", canonical_roles(JsonReader(json, "r.json").member("roles"))},
          {"gemms", canonical_gemms(JsonReader(none, "r.json"), units)}};
}
Json layers(const std::string& text) {
  RecipeUnits units("");
  const Json json = parse_json(R"({"layers": )" + text + "}", "r.json");
  return canonical_layers(base_of(units), JsonReader(json, "r.json").member("layers"), units);
}

}  // namespace

TEST_CASE("layers: entries keep what they say, with canonical names", "[fast]") {
  CHECK(layers("null") == Json::array());
  CHECK(layers(R"([{"match": "a*", "roles": {"weight": {"format": "e4m3fn"}},
                    "gemms": {"fprop": {"unit": "exact"}, "dgrad": null}}])") ==
        parse_json(R"([{"match": "a*", "roles": {"weight": {"format": "float8_e4m3fn"}},
                        "gemms": {"fprop": {"unit": "neutral.exact"}, "dgrad": null}}])",
                   "x"));
}

TEST_CASE("layers: a patch to float32 keeps what is beside it unread", "[fast]") {
  const char* text =
      R"([{"match": "a", "roles": {"weight": {"format": null, "scale": "delayed", "rounding": "x"}}}])";
  CHECK(layers(text) == parse_json(text, "x"));
}

TEST_CASE("layers: merging", "[fast]") {
  RecipeUnits units("");
  Json base = base_of(units);
  base["gemms"]["wgrad"]["unit"] = "neutral.exact";
  const auto merged = [&](const std::string& text) {
    const Json entry = parse_json(text, "e");
    return merged_layer(base, JsonReader(entry, "e"));
  };
  CHECK(merged(R"({"match": "*"})") == base);
  CHECK(merged(R"({"gemms": {"wgrad": null}})")["gemms"]["wgrad"]["unit"] ==
        "neutral.f32.sequential");
  CHECK(merged(R"({"gemms": {"dgrad": {"unit": "neutral.exact"}}})")["gemms"]["wgrad"]["unit"] ==
        "neutral.exact");
  const Json blocks = merged(R"({"roles": {"weight": {"format": "mxfp4"}}})");
  CHECK(blocks["roles"]["weight"]["scale"] == "floor");
  CHECK(typed_layer(blocks, units)[RolePart::weight]->block->name == "mxfp4");
  CHECK(typed_layer(blocks, units).wgrad->row().name == "neutral.exact");
}

TEST_CASE("layers: an entry is checked with the base under it", "[fast]") {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "layers: expected an array"},
      {R"([{"roles": {}}])", "layers[0].match: expected a glob"},
      {R"([{"match": "*", "units": {}}])", "layers[0]: unknown key 'units'"},
      {R"([{"match": "*"}, {"match": "a", "roles": {"weight": {"format": "int99"}}}])",
       "layers[1].roles.weight.format: unknown format 'int99'"},
      {R"([{"match": "a", "roles": {"weight": {"scale": "floor"}}}])",
       "layers[0].roles.weight.scale"},
      {R"([{"match": "a", "gemms": {"fprop": {"unit": "exat"}}}])",
       "layers[0].gemms.fprop.unit: unknown unit 'exat'"},
      {R"([{"match": "a", "gemms": {"fprop": {"unit": "nvidia.h100.wgmma.e4m3.f32"}}}])",
       "layers[0].gemms.fprop.unit: unit nvidia.h100.wgmma.e4m3.f32 does not take operands of "
       "format int8"}};
  for (const auto& [text, message] : cases) {
    INFO(text);
    CHECK_THROWS_WITH(layers(text), Contains(message));
  }
}

TEST_CASE("layers: block formats need a unit that takes them", "[fast]") {
  RecipeUnits units("");
  Json base = base_of(units, R"({"weight": {"format": "mxfp4"}})");
  const Json json;
  const JsonReader where(json, "r.json");
  CHECK_NOTHROW(require_units_take(typed_layer(base, units), where));
  base["gemms"]["dgrad"]["unit"] = "nvidia.h100.wgmma.e4m3.f32";
  CHECK_THROWS_WITH(require_units_take(typed_layer(base, units), where),
                    Contains("r.json: gemms.dgrad.unit: unit nvidia.h100") && Contains("mxfp4"));
}

}  // namespace layers_test
