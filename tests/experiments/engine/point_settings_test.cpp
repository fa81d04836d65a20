// Settings of a point: roles follow their format, paths that lead nowhere are refused.
#include "experiments/engine/sweep_config.hpp"
#include "formats/error.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::experiments;
namespace {

Json changed(const Json& base, const PointSettings& settings) {
  Json recipe = policies::Recipe::parse(base, "base").json();
  apply_settings(recipe, settings, "s.json: point 0");
  return policies::Recipe::parse(recipe, "s.json: point 0").json();
}

const Json kInt8 = {{"numemu_recipe", 1},
                    {"roles", {{"weight", {{"format", "int8"}, {"granularity", "channel"}}}}}};

}  // namespace

TEST_CASE("the order of a role's keys does not matter", "[fast]") {
  const PointSettings forward = {{"roles.weight.format", "mxfp4"}, {"roles.weight.scale", "ceil"}},
                      backward = {forward[1], forward[0]};
  CHECK(changed(kInt8, forward) == changed(kInt8, backward));
  CHECK(changed(kInt8, backward)["roles"]["weight"]["scale"] == "ceil");
}

TEST_CASE("a chosen scale stays where the next format knows it", "[fast]") {
  const Json mse = {{"numemu_recipe", 1},
                    {"roles", {{"weight", {{"format", "int8"}, {"scale", "mse"}}}}}};
  CHECK(changed(mse, {{"roles.weight.format", "int4"}})["roles"]["weight"]["scale"] ==
        "mse(exact)");
  CHECK(changed(mse, {{"roles.weight.format", "mxfp4"}})["roles"]["weight"]["scale"] == "floor");
}

TEST_CASE("a default scale becomes the next format's default", "[fast]") {
  const Json vector = {{"numemu_recipe", 1}, {"roles", {{"vector", {{"format", "int8"}}}}}};
  CHECK(changed(vector, {})["roles"]["vector"]["scale"] == "absmax");
  CHECK(changed(vector, {{"roles.vector.format", "bfloat16"}})["roles"]["vector"]["scale"] ==
        "none");
}

TEST_CASE("roles that were float32 and null formats", "[fast]") {
  const Json bare = {{"numemu_recipe", 1}};
  CHECK(changed(bare, {{"roles.activation.format", "nvfp4"}})["roles"]["activation"]["format"] ==
        "nvfp4");
  CHECK(changed(kInt8, {{"roles.weight.format", nullptr}})["roles"]["weight"].is_null());
  const Json split = changed(
      bare, {{"roles.gradient.dgrad.format", "int8"}, {"roles.gradient.wgrad.format", "mxfp4"}});
  CHECK(split["roles"]["gradient"]["dgrad"]["scale"] == "absmax");
  CHECK(split["roles"]["gradient"]["wgrad"]["scale"] == "floor");
}

TEST_CASE("every key of a recipe is a setting", "[fast]") {
  const Json bare = {{"numemu_recipe", 1}};
  CHECK(changed(bare, {{"transform", "hadamard(4)"}})["transform"]["block"] == 4);
  CHECK(changed(bare, {{"transform.rule", "hadamard"},
                       {"transform.block", 8}})["transform"]["block"] == 8);
  CHECK(changed(bare, {{"penalty.rule", "kure"}, {"penalty.weight", 0.5}})["penalty"]["weight"] ==
        0.5);
  CHECK(changed(bare, {{"norm", {{"statistic", "range"}}}})["norm"]["statistic"] == "range");
  CHECK(changed(bare, {{"update.rule", "delayed(2)"}})["update"]["rule"] == "delayed(2)");
  CHECK(changed(bare, {{"saved", {{"format", "int8"}}}})["roles"]["saved"]["format"] == "int8");
  CHECK(changed(bare, {{"calibrate.rule", "percentile(99)"}})["calibrate"]["rule"] ==
        "percentile(99)");
  CHECK(changed(bare, {{"objectives", Json::array({"cross_entropy", "complement"})}})["objectives"]
            .size() == 2);
  CHECK_THROWS_WITH(changed(bare, {{"calibrate.rul", "absmax"}}),
                    Catch::Contains("s.json: point 0: calibrate") && Catch::Contains("rule"));
  CHECK_THROWS_WITH(changed(bare, {{"transfrom", "hadamard(4)"}}),
                    Catch::Contains("did you mean 'transform'"));
}

TEST_CASE("paths that lead nowhere are named", "[fast]") {
  using Catch::Contains;
  CHECK_THROWS_WITH(changed(kInt8, {{"gemm.fprop.unit", "exact"}}),
                    Contains("s.json: point 0: gemm.fprop.unit") && Contains("did you mean"));
  CHECK_THROWS_WITH(changed(kInt8, {{"layers.0.match", "x"}}), Contains("an index below 0"));
  CHECK_THROWS_WITH(changed(kInt8, {{"seed.x", 1}}), Contains("'seed' is not an object"));
}
