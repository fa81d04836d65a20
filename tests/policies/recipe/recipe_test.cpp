// Recipes: defaults, canonical form, layers, and a refusal by name for everything that is wrong or
// not there.
#include "policies/recipe/recipe.hpp"

#include "formats/error.hpp"
#include "formats/format.hpp"
#include "formats/storage/json.hpp"
#include "policies/canonical_json.hpp"
#include "tests/catch.hpp"

namespace recipe_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;
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
  CHECK_FALSE(
      recipe(with_roles(R"({"weight": {"format": "float32"}})")).layer("fc")[RolePart::weight]);
  CHECK_FALSE(recipe(with_roles(R"({"weight": null})")).layer("fc")[RolePart::weight]);
}

TEST_CASE("later layers entries win, key by key", "[fast]") {
  const Recipe r =
      recipe(R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8", "rounding": "rtz"}},
    "layers": [{"match": "*", "roles": {"weight": {"format": "int4"}}},
               {"match": "conv?", "roles": {"weight": {"format": "int6"}}, "gemms": {"fprop": {"unit": "exact"}}},
               {"match": "conv2", "roles": {"weight": null}}]})");
  CHECK(r.layer("fc1")[RolePart::weight]->format->name == "int4");
  CHECK(r.layer("fc1")[RolePart::weight]->rounding.mode == RoundingMode::rtz);
  CHECK(r.layer("conv1")[RolePart::weight]->format->name == "int6");
  CHECK(r.layer("conv1").fprop->row().name == "neutral.exact");
  CHECK(r.layer("fc1").fprop->row().name == "neutral.f32.sequential");
  CHECK_FALSE(r.layer("conv2")[RolePart::weight]);
  CHECK_NOTHROW(r.require_matches({"conv1", "conv2"}, "r.json"));
  CHECK_THROWS_WITH(r.require_matches({"fc1"}, "r.json"),
                    Contains("layers[1].match: 'conv?' matches no layer"));
}

TEST_CASE("an optional layers entry may match no layer", "[fast]") {
  const auto with = [](const std::string& optional) {
    return R"({"numemu_recipe": 1, "layers": [{"match": "head", "optional": )" + optional +
           R"(, "roles": {"weight": {"format": "int4"}}}]})";
  };
  const Recipe r = recipe(with("true"));
  CHECK_NOTHROW(r.require_matches({"fc1"}, "r.json"));
  CHECK(r.layer("head")[RolePart::weight]->format->name == "int4");
  CHECK(recipe(r.json().dump()).json() == r.json());
  CHECK_THROWS_WITH(recipe(with("false")).require_matches({"fc1"}, "r.json"),
                    Contains("matches no layer"));
  CHECK_THROWS_WITH(recipe(with("1")), Contains("layers[0].optional: expected true or false"));
}

TEST_CASE("a layer's gradient replaces one that is split otherwise", "[fast]") {
  const std::string plain = R"({"format": "float8_e5m2"})",
                    split = R"({"dgrad": {"format": "int8"}, "wgrad": null})";
  const auto layered = [](const std::string& base, const std::string& layer) {
    return recipe(R"({"numemu_recipe": 1, "roles": {"gradient": )" + base +
                  R"(}, "layers": [{"match": "fc", "roles": {"gradient": )" + layer + "}}]}")
        .layer("fc");
  };
  CHECK(layered(plain, split)[RolePart::gradient_dgrad]->format->name == "int8");
  CHECK_FALSE(layered(plain, split)[RolePart::gradient_wgrad]);
  CHECK(layered(split, plain)[RolePart::gradient_wgrad]->format->name == "float8_e5m2");
}

TEST_CASE("a null format is float32 everywhere", "[fast]") {
  CHECK_FALSE(recipe(with_roles(R"({"weight": {"format": null}, "vector": {"format": "float32"}})"))
                  .layer("fc")[RolePart::weight]);
  CHECK_FALSE(
      recipe(
          R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}, "layers": [{"match": "*", "roles": {"weight": {"format": null}}}]})")
          .layer("fc")[RolePart::weight]);
}

TEST_CASE("a gradient may be split", "[fast]") {
  const LayerRecipe layer =
      recipe(with_roles(R"({"gradient": {"dgrad": {"format": "int8"}, "wgrad": null}})"))
          .layer("fc");
  CHECK(layer[RolePart::gradient_dgrad]->format->name == "int8");
  CHECK_FALSE(layer[RolePart::gradient_wgrad]);
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
      {with_roles(R"({"weight": {"format": "int8", "granularity": "blocks"}})"),
       "roles.weight.granularity: unknown granularity 'blocks'; did you mean 'block'"},
      {with_roles(R"({"weight": {"format": "int8", "axis": "reduction"}})"), "roles.weight.axis"},
      {with_roles(R"({"weight": {"format": "int8", "mask": "2:4"}})"),
       "roles.weight.mask: unknown mask"},
      {with_roles(R"({"weight": {"format": "float64"}})"), "a format of at most 16 bits"},
      {with_roles(R"({"weight": {"format": "e13m2"}})"), "at most 8 exponent bits"},
      {with_roles(R"({"weight": {"format": "float8_e8m0fnu"}})"), "a format with a zero"},
      {with_roles(R"({"activation": {"format": "int8", "granularity": "channel"}})"),
       "reduction axis"},
      {with_roles(R"({"vector": {"format": "bfloat17"}})"), "roles.vector.format: unknown format"},
      {with_roles(R"({"saved": {"format": "int2", "mask": "2:4"}})"), "roles.saved.mask"},
      {R"({"numemu_recipe": 1, "gemms": {"fprop": {"unit": "exat"}}})",
       "gemms.fprop.unit: unknown unit 'exat'"},
      {R"({"numemu_recipe": 1, "gemms": {"fprop": {"unit": {"core": "fused"}}}})",
       "gemms.fprop.unit: expected a key 'numemu_unit'"},
      {R"({"numemu_recipe": 1, "update": {"optimizer": "adagrad"}})",
       "update.optimizer: unknown optimizer 'adagrad'"},
      {R"j({"numemu_recipe": 1, "update": {"optimizer": "lion(2)"}})j",
       "update.optimizer: optimizer lion: beta1: expected a number from 0 to 1"},
      {R"j({"numemu_recipe": 1, "update": {"optimizer": "sgd(0.5)"}})j",
       "update.optimizer: optimizer sgd: expected no options, found '0.5'"},
      {R"({"numemu_recipe": 1, "update": {"loss_scale": "automatic"}})",
       "update.loss_scale: unknown loss scale policy 'automatic'"},
      {R"({"numemu_recipe": 1, "update": {"master": "int8"}})", "update.master"},
      {R"({"numemu_recipe": 1, "calibrate": {"rule": "ks"}})",
       "calibrate.rule: unknown calibration rule 'ks'; did you mean 'kl'"},
      {R"({"numemu_recipe": 1, "calibrate": {"samples": 0}})", "calibrate.samples"},
      {with_roles(R"({"weight": {"format": "bfloat16"}})"),
       "roles.weight.scale: expected scale rule none for bfloat16"},
      {R"({"numemu_recipe": 1, "seed": -1})", "r.json: seed"},
      {R"({"numemu_recipe": 1, "seed": 9007199254740993})", "r.json: seed"},
      {R"({"numemu_recipe": 1, "seed": 1, "seed": 2})", "r.json: duplicate key 'seed'"},
      {R"({"numemu_recipe": 1, "layers": [{"roles": {}}]})", "layers[0]"},
      {R"({"numemu_recipe": 1, "layers": [{"match": "*", "roles": {"weight": {"format": "int17"}}}]})",
       "layers[0].roles.weight.format: unknown format 'int17'"},
  };
  for (const auto& [text, message] : cases) {
    INFO(text);
    CHECK_THROWS_WITH(recipe(text), Contains(message));
  }
}

TEST_CASE("a recipe that could be written before keeps its canonical text", "[fast]") {
  // The text of the first schema version: keys of rows depend on it.
  const std::string first = R"({"calibrate":{"rule":"absmax","samples":512},"gemms":{"dgrad":)"
                            R"({"unit":"neutral.f32.sequential"},"fprop":)"
                            R"({"unit":"neutral.f32.sequential"},"wgrad":)"
                            R"({"unit":"neutral.f32.sequential"}},"layers":[],"numemu_recipe":1,)"
                            R"("roles":{"activation":null,"exchange":null,"gradient":null,)"
                            R"("output":null,"saved":null,"state":null,"vector":null,"weight":)"
                            R"({"axis":"channel","format":"int8","granularity":"tensor",)"
                            R"("mask":null,"overflow":"saturate","rounding":"rne",)"
                            R"("scale":"absmax"}},"seed":0,"update":{"loss_scale":"none",)"
                            R"("master":"float32","optimizer":"adam","rounding":"rne"}})";
  CHECK(canonical_json(recipe(with_roles(R"({"weight": {"format": "int8"}})")).json()) == first);
}

TEST_CASE("the recipe of the specification", "[fast]") {
  const Recipe r = recipe(R"j({"numemu_recipe": 1, "seed": 0,
 "roles": {"weight":     {"format": "float8_e4m3fn", "rounding": "rne", "overflow": "saturate", "scale": "absmax", "granularity": "tensor", "mask": null},
           "activation": {"format": "float8_e4m3fn", "granularity": "tensor", "scale": "absmax"},
           "gradient":   {"format": "float8_e5m2", "rounding": "sr(8)"},
           "vector": null, "output": null, "saved": null, "state": null, "exchange": null
}
, "gemms" : {
  "fprop" : {"unit" : "nvidia.h100.wgmma.e4m3.f32"},
  "dgrad" : {"unit" : "f32.sequential"},
  "wgrad" : {"unit" : "f32.sequential"}
},
            "update"
    : {"optimizer" : "sgd", "master" : "float32", "rounding" : "rne", "loss_scale" : "none"},
      "calibrate" : {"rule" : "absmax", "samples" : 512},
                    "layers"
    : [
      {
        "match" : "conv1",
        "roles" : {
          "weight" :
              {"format" : "mxfp4", "granularity" : "block", "axis" : "channel", "scale" : "floor"}
        },
        "gemms" : {"fprop" : {"unit" : "exact"}}
      },
      {"match" : "*.fc", "gemms" : {"fprop" : {"unit" : "exact"}}}
    ]})j");
  CHECK(r.layer("conv1")[RolePart::weight]->block->name == "mxfp4");
  CHECK(r.layer("conv1")[RolePart::activation]->format->name == "float8_e4m3fn");
  CHECK(r.layer("conv2")[RolePart::weight]->format->name == "float8_e4m3fn");
  CHECK(r.layer("conv2").fprop->row().name == "nvidia.h100.wgmma.e4m3.f32");
  CHECK(r.layer("a.fc").fprop->row().name == "neutral.exact");
  CHECK(r.update().optimizer == "sgd");
  CHECK(r.calibration().samples == 512);
}

TEST_CASE("a described unit of a recipe serves every layer", "[fast]") {
  const Recipe r = recipe(
      R"({"numemu_recipe": 1, "gemms": {"fprop": {"unit": {"numemu_unit": 1, "name": "my.chain", "core": "chain",
          "accumulator": {"format": "float16"}}}}, "layers": [{"match": "fc", "gemms": {"wgrad": {"unit": {"numemu_unit": 1,
          "name": "my.other", "core": "chain", "accumulator": {"format": "bfloat16"}}}}}]})");
  CHECK(r.layer("conv").fprop->row().name == "my.chain");
  CHECK(r.layer("conv").fprop == r.layer("fc").fprop);
  CHECK(r.layer("fc").wgrad->d_format()->name == "bfloat16");
  CHECK(recipe(r.json().dump()).json() == r.json());
  LayerRecipe kept;
  {
    const Recipe short_lived = recipe(r.json().dump());
    kept = short_lived.layer("fc");
  }
  CHECK(kept.unit(net::GemmKind::wgrad).row().name == "my.other");
}

TEST_CASE("overlapping layers are checked where they meet", "[fast]") {
  const Recipe r = recipe(
      R"({"numemu_recipe": 1, "layers": [{"match": "*", "roles": {"weight": {"format": "int8"}}},
          {"match": "fc", "gemms": {"fprop": {"unit": "nvidia.h100.wgmma.e4m3.f32"}}}]})");
  CHECK_NOTHROW(r.layer("conv"));
  CHECK_THROWS_WITH(r.layer("fc"),
                    Contains("recipe: layer fc: gemms.fprop.unit") && Contains("int8"));
}

TEST_CASE("results of other formats than float32 are taken", "[fast]") {
  const std::string gemms = R"(, "gemms": {"fprop": {"unit": ")";
  for (const auto& [format, unit] : {std::pair("float16", "nvidia.h100.mma.f16.f16"),
                                     std::pair("int8", "nvidia.h100.wgmma.s8.s32"),
                                     std::pair("float8_e4m3fn", "nvidia.h100.mma.e4m3.f16")}) {
    const Recipe r = recipe(R"({"numemu_recipe": 1, "roles": {"weight": {"format": ")" +
                            std::string(format) + R"("}})" + gemms + unit + R"("}}})");
    CHECK(r.layer("fc").fprop->row().name == unit);
  }
}

}  // namespace recipe_test
