// Recipes: defaults, canonical form, layers, and a refusal by name for everything that is wrong or
// not there.
#include "policies/recipe/recipe.hpp"

#include <nlohmann/json.hpp>

#include "formats/error.hpp"
#include "formats/format.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;
using Json = nlohmann::ordered_json;

namespace {

Recipe recipe(const std::string& text) { return Recipe::parse_text(text, "r.json"); }
std::string with_roles(const std::string& roles) {
  return R"({"numemu_recipe": 1, "roles": )" + roles + "}";
}

}  // namespace

TEST_CASE("defaults are written out and the canonical form is a fixed point", "[fast]") {
  const Recipe r = recipe(with_roles(R"({"weight": {"format": "e4m3fn"}})"));
  const Json& weight = r.json()["roles"]["weight"];
  CHECK(weight["format"] == "float8_e4m3fn");
  CHECK(weight["rounding"] == "rne");
  CHECK(weight["overflow"] == "saturate");
  CHECK(weight["scale"] == "absmax");
  CHECK(weight["granularity"] == "tensor");
  CHECK(r.json()["roles"]["activation"].is_null());
  CHECK(r.json()["gemms"]["fprop"]["unit"] == "neutral.f32.sequential");
  CHECK(r.json()["calibrate"]["samples"] == 512);
  CHECK(recipe(r.json().dump()).json() == r.json());
}

TEST_CASE("float32 and null mean not quantized", "[fast]") {
  CHECK_FALSE(recipe(with_roles(R"({"weight": {"format": "float32"}})")).layer("fc").weight);
  CHECK_FALSE(recipe(with_roles(R"({"weight": null})")).layer("fc").weight);
}

TEST_CASE("later layers entries win, key by key", "[fast]") {
  const Recipe r =
      recipe(R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8", "rounding": "rtz"}},
    "layers": [{"match": "*", "roles": {"weight": {"format": "int4"}}},
               {"match": "conv?", "roles": {"weight": {"format": "int6"}}, "gemms": {"fprop": {"unit": "exact"}}},
               {"match": "conv2", "roles": {"weight": null}}]})");
  CHECK(r.layer("fc1").weight->format->name == "int4");
  CHECK(r.layer("fc1").weight->rounding.mode == RoundingMode::rtz);
  CHECK(r.layer("conv1").weight->format->name == "int6");
  CHECK(r.layer("conv1").fprop_unit == "neutral.exact");
  CHECK(r.layer("fc1").fprop_unit == "neutral.f32.sequential");
  CHECK_FALSE(r.layer("conv2").weight);
  CHECK_NOTHROW(r.require_matches({"conv1", "conv2"}, "r.json"));
  CHECK_THROWS_WITH(r.require_matches({"fc1"}, "r.json"),
                    Contains("layers[1].match: 'conv?' matches no layer"));
}

TEST_CASE("a layer's gradient replaces one that is split otherwise", "[fast]") {
  const std::string plain = R"({"format": "float8_e5m2"})",
                    split = R"({"dgrad": {"format": "int8"}, "wgrad": null})";
  const auto layered = [](const std::string& base, const std::string& layer) {
    return recipe(R"({"numemu_recipe": 1, "roles": {"gradient": )" + base +
                  R"(}, "layers": [{"match": "fc", "roles": {"gradient": )" + layer + "}}]}")
        .layer("fc");
  };
  CHECK(layered(plain, split).gradient_dgrad->format->name == "int8");
  CHECK_FALSE(layered(plain, split).gradient_wgrad);
  CHECK(layered(split, plain).gradient_wgrad->format->name == "float8_e5m2");
}

TEST_CASE("a null format is float32 everywhere", "[fast]") {
  CHECK_FALSE(recipe(with_roles(R"({"weight": {"format": null}, "vector": {"format": "float32"}})"))
                  .layer("fc")
                  .weight);
  CHECK_FALSE(
      recipe(
          R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}, "layers": [{"match": "*", "roles": {"weight": {"format": null}}}]})")
          .layer("fc")
          .weight);
}

TEST_CASE("a gradient may be split", "[fast]") {
  const LayerRecipe layer =
      recipe(with_roles(R"({"gradient": {"dgrad": {"format": "int8"}, "wgrad": null}})"))
          .layer("fc");
  CHECK(layer.gradient_dgrad->format->name == "int8");
  CHECK_FALSE(layer.gradient_wgrad);
}

TEST_CASE("every wrong value is refused by name", "[fast]") {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"numemu_recipe": 2})", "r.json: numemu_recipe: expected schema version 1"},
      {R"({})", "r.json: expected a key 'numemu_recipe'"},
      {R"({"numemu_recipe": 1, "rolls": {}})", "'rolls'"},
      {with_roles(R"({"weights": null})"), "'weights'; did you mean 'weight'"},
      {with_roles(R"({"weight": {"format": "float8_e4m3fm"}})"),
       "r.json: roles.weight.format: unknown format 'float8_e4m3fm'"},
      {with_roles(R"({"weight": {"rounding": "rne"}})"),
       "r.json: roles.weight: expected a key 'format'"},
      {with_roles(R"({"weight": {"format": "int8", "rounding": "rnd"}})"),
       "roles.weight.rounding: unknown rounding 'rnd'"},
      {with_roles(R"({"weight": {"format": "int8", "overflow": "wrap"}})"),
       "roles.weight.overflow"},
      {with_roles(R"({"weight": {"format": "int8", "scale": "absmx"}})"),
       "roles.weight.scale: unknown scale rule 'absmx'; did you mean 'absmax'"},
      {with_roles(R"({"weight": {"format": "int8", "granularity": "block"}})"),
       "roles.weight.granularity: unknown granularity 'block'"},
      {with_roles(R"({"weight": {"format": "int8", "axis": "reduction"}})"), "roles.weight.axis"},
      {with_roles(R"({"weight": {"format": "int8", "mask": "2:4"}})"),
       "roles.weight.mask: unknown mask"},
      {with_roles(R"({"weight": {"format": "float64"}})"), "a format of at most 16 bits"},
      {with_roles(R"({"weight": {"format": "e13m2"}})"), "at most 8 exponent bits"},
      {with_roles(R"({"weight": {"format": "float8_e8m0fnu"}})"), "a format with a zero"},
      {with_roles(R"({"activation": {"format": "int8", "granularity": "channel"}})"),
       "reduction axis"},
      {with_roles(R"({"vector": {"format": "bfloat16"}})"),
       "roles.vector: no policy quantizes the role 'vector'"},
      {with_roles(R"({"saved": {"format": "int2"}})"), "'saved'"},
      {R"({"numemu_recipe": 1, "gemms": {"fprop": {"unit": "exat"}}})",
       "gemms.fprop.unit: unknown unit 'exat'"},
      {R"({"numemu_recipe": 1, "gemms": {"fprop": {"unit": {"core": "fused"}}}})",
       "described units"},
      {R"({"numemu_recipe": 1, "update": {"optimizer": "lion"}})",
       "update.optimizer: unknown optimizer 'lion'"},
      {R"({"numemu_recipe": 1, "update": {"loss_scale": "dynamic"}})",
       "update.loss_scale: unknown loss scale policy 'dynamic'"},
      {R"({"numemu_recipe": 1, "update": {"master": "bfloat16"}})", "update.master"},
      {R"({"numemu_recipe": 1, "calibrate": {"rule": "kl"}})",
       "calibrate.rule: unknown calibration rule 'kl'"},
      {R"({"numemu_recipe": 1, "calibrate": {"samples": 0}})", "calibrate.samples"},
      {with_roles(R"({"weight": {"format": "bfloat16"}})"),
       "roles.weight.scale: expected the scale rule none for bfloat16"},
      {R"({"numemu_recipe": 1, "seed": -1})", "r.json: seed"},
      {R"({"numemu_recipe": 1, "layers": [{"roles": {}}]})", "layers[0]"},
      {R"({"numemu_recipe": 1, "layers": [{"match": "*", "roles": {"weight": {"format": "int17"}}}]})",
       "layers[0].roles.weight.format: unknown format 'int17'"},
  };
  for (const auto& [text, message] : cases) {
    INFO(text);
    CHECK_THROWS_WITH(recipe(text), Contains(message));
  }
}

TEST_CASE("globs", "[fast]") {
  CHECK(glob_match("*.fc", "block.fc"));
  CHECK_FALSE(glob_match("*.fc", "fc"));
  CHECK(glob_match("conv?", "conv1"));
  CHECK_FALSE(glob_match("conv?", "conv12"));
  CHECK(glob_match("*", ""));
  CHECK(glob_match("a*b*c", "axxbyyc"));
}
