// The key stages of a recipe: patches laid over each other, the canonical form, errors with their
// paths.
#include "policies/recipe/stages.hpp"

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace stages_test {

using namespace numemu;
using namespace numemu::policies;
using numemu::test::message_of;

namespace {

Json json_of(const std::string& text) { return parse_json(text, "t"); }

Recipe with_stages(const std::string& stages, const std::string& base = "") {
  return Recipe::parse_text(R"j({"numemu_recipe": 1, )j" + base + R"j("stages": )j" + stages + "}",
                            "r.json");
}

std::string refused(const std::string& stages, const std::string& base = "") {
  return message_of([&] { with_stages(stages, base); });
}

/// One stage from epoch 1 on.
std::string patched(const std::string& patch) {
  return R"j([{"from": {"epoch": 1}, "patch": )j" + patch + "}]";
}

constexpr const char* kInt8 = R"j("roles": {"weight": {"format": "int8"}}, )j";

}  // namespace

TEST_CASE("stages: the merge patches of RFC 7386, appendix A", "[fast]") {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
      {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
      {R"({"a":"foo"})", "null", "null"},
      {R"({"a":"foo"})", R"("bar")", R"("bar")"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {"[1,2]", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {"{}", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"}};
  for (const auto& [target, patch, result] : cases) {
    INFO(target << " " << patch);
    CHECK(merged_patch(json_of(target), json_of(patch)) == json_of(result));
    CHECK(merged_patch(json_of(target), patch_between(json_of(target), json_of(result))) ==
          json_of(result));
  }
  // Objects are the same in any order.
  CHECK(patch_between(json_of(R"({"o":{"a":1,"b":2}})"), json_of(R"({"o":{"b":2,"a":1}})")) ==
        json_of("{}"));
  // null and absent are the same.
  CHECK(patch_between(json_of(R"({"a":1,"b":null})"), json_of(R"({"a":null,"c":null})")) ==
        json_of(R"({"a":null})"));
}

TEST_CASE("stages: a role written beside roles is removed in roles", "[fast]") {
  for (const std::string key : {"saved", "exchange"}) {
    INFO(key);
    const std::string role = '"' + key + "\": {\"format\": \"int8\"}, ",
                      null = '"' + key + "\": null";
    CHECK(refused(patched("{" + null + "}"), role) ==
          "r.json: stages[0].patch." + key + ": expected roles." + key +
              " to remove: it is a role before this stage");
    const Recipe recipe = with_stages(patched("{\"roles\": {" + null + "}}"), role);
    CHECK(recipe.in_stage(0).json()["roles"][key].is_object());
    CHECK(recipe.in_stage(1).json()["roles"][key].is_null());
  }
}

TEST_CASE("stages: each entry changes the recipe before it", "[fast]") {
  const Recipe recipe = with_stages(
      R"j([{"from": {"epoch": 2}, "patch": {"roles": {"weight": {"format": "int4"}}}},
           {"from": {"plateau": 0.01}, "patch": {"penalty": "kure", "gemms": {"fprop": {"unit": "exact"}}}},
           {"from": {"epoch": 9}, "patch": {"roles": {"weight": null}, "layers": [{"match": "fc*", "penalty": null}]}}])j",
      kInt8);
  REQUIRE(recipe.stages().size() == 3);
  CHECK(recipe.stages()[0].epoch == 2);
  CHECK(recipe.stages()[1].epoch == 0);
  CHECK(recipe.stages()[1].plateau == 0.01);
  const auto weight = [&](std::size_t stage) {
    const auto role = recipe.in_stage(stage).layer("fc1")[RolePart::weight];
    return role ? std::string(role->format->name) : "float32";
  };
  CHECK(weight(0) == "int8");
  CHECK(weight(1) == "int4");
  CHECK(weight(2) == "int4");
  CHECK(weight(3) == "float32");
  CHECK(recipe.in_stage(1).layer("fc1").fprop->row().name == "neutral.f32.sequential");
  CHECK(recipe.last_stage().layer("fc1").fprop->row().name == "neutral.exact");
  CHECK(recipe.in_stage(2).policies("fc1")[0].has_value());
  CHECK_FALSE(recipe.last_stage().policies("fc1")[0].has_value());
  CHECK(recipe.last_stage().policies("conv1")[0].has_value());
  for (std::size_t i = 0; i < 4; ++i) CHECK(recipe.in_stage(i).stages().empty());
}

TEST_CASE("stages: each is the recipe that its merged text gives", "[fast]") {
  const std::string seeded = R"j("seed": 7, )j";
  const Recipe recipe = with_stages(
      patched(R"j({"roles": {"weight": {"format": "mxfp4"}}, "saved": {"format": "int8"}})j"),
      seeded + R"j("roles": {"weight": {"format": "int8"}}, )j");
  const Recipe merged = Recipe::parse_text(
      R"j({"numemu_recipe": 1, "seed": 7, "roles": {"weight": {"format": "mxfp4"}, "saved": {"format": "int8"}}})j",
      "m");
  CHECK(recipe.last_stage().json() == merged.json());
}

TEST_CASE("stages: the canonical form has them only where they are, and is read back", "[fast]") {
  const Recipe none = with_stages("[]", kInt8);
  CHECK_FALSE(none.json().contains("stages"));
  CHECK(none.json() == none.last_stage().json());
  const Recipe recipe = with_stages(
      R"j([{"from": {"plateau": 0.125}, "patch": {"exchange": {"rule": "topk", "format": "int8"},
            "roles": {"weight": {"format": "e4m3fn", "ste": "clipped"}}}},
           {"from": {"epoch": 3}, "patch": {"exchange": null,
            "gemms": {"dgrad": {"unit": {"numemu_unit": 1, "name": "my.fp8", "a": "float8_e4m3fn",
              "b": "float8_e4m3fn", "c": "float32", "d": "float32", "core": "fused", "k": 32,
              "group": 8, "alignment": {"fraction_bits": 20}, "nan_code": "0x7fffffff",
              "accumulator": {"format": "e8m20", "rounding": "rtz", "overflow_to_infinity": true}}}},
            "roles": {"weight": {"ste": null}, "gradient": {"format": "e4m3fn"}, "exchange": null}}}])j",
      kInt8);
  const Json& json = recipe.json();
  CHECK(json["stages"][0] == json_of(R"j({"from": {"plateau": 0.125}, "patch": {
      "roles": {"weight": {"format": "float8_e4m3fn", "ste": "clipped"},
                "exchange": {"format": "int8", "rounding": "rne", "overflow": "saturate", "scale": "absmax",
                             "granularity": "tensor", "axis": "channel"}},
      "exchange": {"rule": "topk", "share": 0.01}}})j"));
  const Recipe again = Recipe::parse(json, "again");
  CHECK(again.json() == json);
  for (std::size_t i = 0; i < 3; ++i) CHECK(again.in_stage(i).json() == recipe.in_stage(i).json());
}

TEST_CASE("stages: errors give their path", "[fast]") {
  CHECK(refused("{}") == "r.json: stages: expected an array");
  std::string many = "[{}";
  for (int i = 0; i < 1000; ++i) many += ", {}";
  CHECK(refused(many + "]") == "r.json: stages: expected at most 1000 stages");
  const std::string starts = "{\"epoch\": N}, {\"plateau\": X} or {\"turning_point\": X}";
  CHECK(refused("[{}]") == "r.json: stages[0].from: expected " + starts);
  CHECK(refused(R"j([{"from": {"epoch": 1}}])j") == "r.json: stages[0].patch: expected an object");
  CHECK(refused(R"j([{"from": {"epoch": 1}, "pacth": {}}])j") ==
        "r.json: stages[0]: unknown key 'pacth'; did you mean 'patch'?");
  const auto from = [](const std::string& text) {
    return refused(R"j([{"from": {"epoch": 4}, "patch": {}}, {"from": )j" + text +
                   R"j(, "patch": {}}])j");
  };
  CHECK(from(R"j({"epoch": 5})j").empty());
  CHECK(from(R"j({"epoch": 4})j").starts_with("r.json: stages[1].from.epoch: expected"));
  CHECK(from(R"j({"epoch": null})j") ==
        "r.json: stages[1].from.epoch: expected the number of an epoch");
  CHECK(from(R"j({"epok": 5})j") ==
        "r.json: stages[1].from: unknown key 'epok'; did you mean 'epoch'?");
  CHECK(from(R"j({"plateau": -0.1})j") ==
        "r.json: stages[1].from.plateau: expected a number from 0 to 1");
  CHECK(from(R"j({"turning_point": 2})j") ==
        "r.json: stages[1].from.turning_point: expected a number from 0 to 1");
  CHECK(with_stages(R"j([{"from": {"turning_point": 0.5}, "patch": {}}])j").json()["stages"] ==
        json_of(R"j([{"from": {"turning_point": 0.5}, "patch": {}}])j"));
  CHECK(from(R"j({"plateau": 0.1, "epoch": 5})j") == "r.json: stages[1].from: expected " + starts);
  const std::pair<const char*, const char*> cases[] = {
      {R"j({"roles": {"weight": {"format": "int99"}}})j",
       "r.json: stages[0].patch.roles.weight.format: unknown format 'int99'"},
      {R"j({"rols": {}})j", "r.json: stages[0].patch: unknown key 'rols'"},
      {R"j({"roles": {"weigth": null}})j",
       "r.json: stages[0].patch.roles.weigth: expected a key to remove"},
      {R"j({"saved": null})j", "r.json: stages[0].patch.saved: expected a key to remove"},
      {R"j({"gemms": {"fprop": {"unit": "exat"}}})j",
       "r.json: stages[0].patch.gemms.fprop.unit: unknown unit 'exat'"},
      {R"j({"gemms": {"fprop": {"unit": "nvidia.h100.wgmma.e4m3.f32"}}})j",
       "r.json: stages[0].patch.gemms.fprop.unit: unit nvidia.h100.wgmma.e4m3.f32 does not take"},
      {R"j({"penalty": "kur"})j", "r.json: stages[0].patch.penalty: unknown penalty 'kur'"},
      {R"j({"layers": [{"match": "a", "roles": {"weight": {"format": 3}}}]})j",
       "r.json: stages[0].patch.layers[0].roles.weight.format: expected a string"},
      {R"j({"seed": 1})j", "r.json: stages[0].patch.seed: expected no such key"},
      {R"j({"numemu_recipe": 1})j", "r.json: stages[0].patch.numemu_recipe: expected no such key"},
      {R"j({"stages": []})j", "r.json: stages[0].patch.stages: expected no such key"},
      {R"j({"objectives": ["complement"]})j",
       "r.json: stages[0].patch.objectives: expected no such key"},
      {R"j({"update": {"optimizer": "adam"}})j",
       "r.json: stages[0].patch.update.optimizer: expected no such key"},
      {R"j({"update": null})j",
       "r.json: stages[0].patch.update: expected update.optimizer unchanged"}};
  for (const auto& [patch, message] : cases) {
    INFO(patch);
    CHECK_THAT(
        refused(patched(patch), std::string(kInt8) + R"j("update": {"optimizer": "sgd"}, )j"),
        Catch::StartsWith(message));
  }
}

}  // namespace stages_test
