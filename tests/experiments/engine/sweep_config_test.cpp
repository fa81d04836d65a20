// Sweep expansion: grids, ties, single points, seeds; wrong configurations are refused with the
// key.
#include "experiments/engine/sweep_config.hpp"

#include <filesystem>
#include <fstream>

#include "formats/error.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace sweep_config_test {

using namespace numemu::experiments;
using namespace numemu;
using Catch::Contains;

namespace {

SweepConfig sweep(const std::string& rest) {
  return parse_sweep(R"({"numemu_sweep": 1, )" + rest + "}", "s.json");
}

std::string format_of(const Point& point, const char* role) {
  const auto& value = point.row.recipe["roles"][role];
  return value.is_null() ? "float32" : value["format"].get<std::string>();
}

}  // namespace

TEST_CASE("a grid is cartesian and the last key is fastest", "[fast]") {
  const SweepConfig c = sweep(
      R"("grid": {"roles.weight.format": ["int4", "int8"], "gemms.*.unit": ["f32.sequential", "exact"]})");
  REQUIRE(c.points.size() == 4);
  CHECK(format_of(c.points[1], "weight") == "int4");
  CHECK(c.points[1].row.recipe["gemms"]["dgrad"]["unit"] == "neutral.exact");
  CHECK(format_of(c.points[2], "weight") == "int8");
}

TEST_CASE("points of a recipe with stages have the last one, and its number", "[fast]") {
  const SweepConfig c = sweep(
      R"("base": {"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}, "stages": [{"from": {"epoch": 1},
          "patch": {"roles": {"weight": {"rounding": "rtz"}}}}]},
         "grid": {"roles.weight.format": ["int4", "int8"]})");
  REQUIRE(c.points.size() == 2);
  for (const Point& point : c.points) {
    CHECK(point.row.stage == 1);
    CHECK(point.row.recipe["roles"]["weight"]["rounding"] == "rtz");
    CHECK(point.row.recipe == point.recipe.json());
    CHECK_FALSE(point.row.recipe.contains("stages"));
  }
  CHECK(format_of(c.points[1], "weight") == "int8");
  CHECK_FALSE(sweep(R"("net": "mlp")").points[0].row.stage);
}

TEST_CASE("ties move keys together", "[fast]") {
  const SweepConfig copied = sweep(
      R"("grid": {"roles.weight.format": ["int4", "int8"]}, "tie": [["roles.weight.format", "roles.activation.format"]])");
  REQUIRE(copied.points.size() == 2);
  CHECK(format_of(copied.points[0], "activation") == "int4");
  const SweepConfig zipped = sweep(
      R"("grid": {"roles.weight.format": ["int4", "int8"], "roles.activation.format": ["int8", "int4"]},
                                      "tie": [["roles.weight.format", "roles.activation.format"]])");
  REQUIRE(zipped.points.size() == 2);
  CHECK(format_of(zipped.points[1], "weight") == "int8");
  CHECK(format_of(zipped.points[1], "activation") == "int4");
}

TEST_CASE("roles follow their format through element and block formats", "[fast]") {
  const SweepConfig c = sweep(
      R"("base": {"numemu_recipe": 1, "roles": {"weight": {"format": "int8", "granularity": "channel"}}},
         "grid": {"roles.weight.format": ["int8", "mxfp4", "nvfp4", "float8_e4m3fn"]})");
  REQUIRE(c.points.size() == 4);
  const auto weight = [&](std::size_t i) { return c.points[i].row.recipe["roles"]["weight"]; };
  CHECK(weight(0)["granularity"] == "channel");
  CHECK(weight(1)["granularity"] == "block");
  CHECK(weight(1)["scale"] == "floor");
  CHECK(weight(2)["scale"] == "absmax");
  CHECK(weight(3)["granularity"] == "channel");
}

TEST_CASE("a base of blocks gives element formats and other blocks their own defaults", "[fast]") {
  const SweepConfig c = sweep(
      R"("base": {"numemu_recipe": 1, "roles": {"weight": {"format": "mxfp4", "rounding": "rtz"}}},
         "grid": {"roles.weight.format": ["mxfp8_e4m3", "nvfp4", "int4"]},
         "points": [{"roles.weight.granularity": "channel", "roles.weight.format": "int4"},
                    {"roles.weight.scale": "ceil"}, {"roles.weight": {"format": "int8"}}])");
  REQUIRE(c.points.size() == 6);
  const auto weight = [&](std::size_t i) { return c.points[i].row.recipe["roles"]["weight"]; };
  CHECK(weight(0)["scale"] == "floor");
  CHECK(weight(1)["scale"] == "absmax");
  CHECK(weight(2)["granularity"] == "tensor");
  CHECK(weight(2)["rounding"] == "rtz");
  CHECK(weight(3)["granularity"] == "channel");  // for any order of the two keys
  CHECK(weight(4)["scale"] == "ceil");
  CHECK(weight(5)["rounding"] == "rne");
  // The canonical form expands to the same points.
  const SweepConfig again = parse_sweep(c.json.dump(), "s.json");
  REQUIRE(again.points.size() == c.points.size());
  for (std::size_t i = 0; i < c.points.size(); ++i)
    CHECK(row_key(again.points[i].row) == row_key(c.points[i].row));
}

TEST_CASE("layers and described units are axes too", "[fast]") {
  const SweepConfig c = sweep(
      R"("grid": {"layers": [[], [{"match": "fc1", "roles": {"weight": {"format": "mxfp4"}}}]],
                  "gemms.*.unit": ["exact", {"numemu_unit": 1, "name": "my.mac", "core": "chain",
                                             "accumulator": {"format": "float16"}}]})");
  REQUIRE(c.points.size() == 4);
  CHECK(c.points[0].row.recipe["layers"].empty());
  CHECK(c.points[0].row.recipe["gemms"]["wgrad"]["unit"] == "neutral.exact");
  CHECK(c.points[3].row.recipe["layers"][0]["match"] == "fc1");
  CHECK(c.points[3].row.recipe["gemms"]["wgrad"]["unit"]["name"] == "my.mac");
  CHECK(c.points[3].recipe.layer("fc1")[numemu::policies::RolePart::weight]->block != nullptr);
}

TEST_CASE("folding batch normalisation is of the sweep and of its points", "[fast]") {
  const SweepConfig folded = sweep(R"("fold_batch_norm": true)"),
                    plain = sweep(R"("net": "lenet")");
  CHECK(folded.fold_batch_norm);
  CHECK(folded.json["fold_batch_norm"] == true);
  CHECK(plain.json["fold_batch_norm"] == false);
  CHECK(row_key(folded.points[0].row) != row_key(plain.points[0].row));
}

TEST_CASE("recipes of a grid have names, files or are written out", "[fast]") {
  const numemu::test::TemporaryFolder data;
  std::filesystem::create_directory(data / "recipes");
  std::ofstream(data / "recipes/small.json")
      << R"({"numemu_recipe": 1, "seed": 5, "roles": {"weight": {"format": "int4"}}})";
  const auto parsed = [&](const std::string& rest) {
    return parse_sweep(R"({"numemu_sweep": 1, )" + rest + "}", "s.json", data.path());
  };
  const SweepConfig c = parsed(
      R"("grid": {"recipe": ["small", {"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}}],
                  "gemms.*.unit": ["f32.sequential", "exact"]})");
  REQUIRE(c.points.size() == 4);
  CHECK(format_of(c.points[0], "weight") == "int4");
  CHECK(c.points[0].recipe_name == "small, gemms.*.unit f32.sequential");
  CHECK(c.points[0].recipe.seed() == 5);
  CHECK(format_of(c.points[2], "weight") == "int8");
  CHECK(c.points[2].recipe_name.empty());
  CHECK(c.points[3].row.recipe["gemms"]["fprop"]["unit"] == "neutral.exact");
  const SweepConfig again = parse_sweep(c.json.dump(), "s.json", data.path());
  REQUIRE(again.points.size() == 4);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(row_key(again.points[i].row) == row_key(c.points[i].row));
  const SweepConfig based = parsed(
      R"("base": "small", "seeds": [2], "points": [{}, {"recipe": "small"}, {"roles.weight.format": "int3"}])");
  REQUIRE(based.points.size() == 2);  // the second repeats the first
  CHECK(based.points[0].recipe_name == "small");
  CHECK(based.points[0].recipe.seed() == 2);
  CHECK(based.points[1].recipe_name == "small, roles.weight.format int3");
  CHECK_THROWS_WITH(parsed(R"("base": "smal")"),
                    Contains("s.json: base: unknown recipe 'smal'") &&
                        Contains("did you mean 'small'") &&
                        Contains("expected a file or a shipped recipe"));
  CHECK_THROWS_WITH(parsed(R"("points": [{"recipe": 3}])"),
                    Contains("point 0: recipe: expected a recipe, or the name"));
}

TEST_CASE("metrics are of the sweep and of its points", "[fast]") {
  SweepConfig c = sweep(R"("metrics": ["top5", "log_loss"])");
  CHECK(c.metrics == std::vector<std::string>{"top5", "log_loss"});
  CHECK(numemu::json_of(c.points[0].row)["metrics"] == c.json["metrics"]);
  CHECK(sweep(R"("net": "mlp")").points[0].row.metrics.empty());
  CHECK_THROWS_WITH(sweep(R"("metrics": ["top6"])"),
                    Contains("unknown metric 'top6'; known: top1, "));
  CHECK_THROWS_WITH(sweep(R"("metrics": "top5")"), Contains("metrics: expected a list of metrics"));
}

TEST_CASE("another data set calibrates a sweep, not a point of it", "[fast]") {
  SweepConfig c = sweep(R"("calibrate_on": "mnist")");
  CHECK(c.calibrate_on == "mnist");
  CHECK(c.json["calibrate_on"] == "mnist");
  CHECK_FALSE(
      numemu::json_of(c.points[0].row).contains("calibrate_on"));  // the digest of the data has it
  set_calibration(c, "");
  CHECK(c.calibrate_on == "mnist");
  set_calibration(c, "glyphs");
  CHECK(c.json["calibrate_on"] == "glyphs");
  CHECK_FALSE(sweep(R"("net": "mlp")").json.contains("calibrate_on"));
  CHECK_THROWS_WITH(sweep(R"("calibrate_on": 3)"), Contains("calibrate_on: expected"));
}

TEST_CASE("single points, seeds and repeated cells", "[fast]") {
  const SweepConfig c = sweep(
      R"("seeds": [0, 1], "grid": {"roles.weight.format": ["int4", "int4"]}, "points": [{"roles.weight": null}, {}])");
  CHECK(c.points.size() == 4);  // int4 and float32, twice
  CHECK(c.repeated == 4);
  CHECK(c.points[2].recipe.seed() == 1);
  CHECK(sweep(R"("net": "mlp")").points.size() == 1);
  CHECK(sweep(R"("points": [])").points.empty());
}

TEST_CASE("the canonical form expands to the same points", "[fast]") {
  for (const char* rest :
       {R"("net": "mlp")", R"("points": [])", R"("points": [{"roles.weight": {"format": "int8"}}])",
        R"("grid": {}, "points": [])", R"("grid": {"seed": [1, 2]}, "points": [{}])"}) {
    const SweepConfig once = sweep(rest), twice = parse_sweep(once.json.dump(), "s.json");
    INFO(rest);
    CHECK(twice.points.size() == once.points.size());
    CHECK(twice.json == once.json);
  }
}

TEST_CASE("keys depend on the point alone, not on spelling or order", "[fast]") {
  const auto
      a = sweep(R"("grid": {"roles.weight.format": ["e4m3fn"]})"),
      b = sweep(
          R"("base": {"numemu_recipe": 1, "roles": {"weight": {"format": "float8_e4m3fn"}}})");
  CHECK(row_key(a.points[0].row) == row_key(b.points[0].row));
  CHECK(row_key(a.points[0].row).size() == 64);
  CHECK(row_key(a.points[0].row) !=
        row_key(sweep(R"("grid": {"roles.weight.format": ["int8"]})").points[0].row));
}

TEST_CASE("a sweep has at most 1000 keys", "[fast]") {
  const auto keys = [](int count, const char* value) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += (i > 0 ? ", \"k" : "\"k") + std::to_string(i) + "\"" + value;
    return text;
  };
  const std::string grid = R"("grid": {"roles.weight.format": ["int8"]}, )";
  CHECK_THROWS_WITH(sweep("\"grid\": {" + keys(20000, ": [1]") + "}"),
                    "s.json: grid: expected at most 1000 keys");
  CHECK_THROWS_WITH(sweep("\"grid\": {" + keys(1000, ": [1]") + "}"),
                    Contains("point 0: k0: unknown key 'k0'"));
  CHECK_THROWS_WITH(sweep("\"points\": [{" + keys(1001, ": 1") + "}]"),
                    "s.json: points: expected objects of at most 1000 keys");
  CHECK_THROWS_WITH(sweep(grid + "\"tie\": [[\"roles.weight.format\", " + keys(1000, "") + "]]"),
                    "s.json: tie: expected at most 1000 keys in all");
}

TEST_CASE("wrong sweeps are refused with the key", "[fast]") {
  const std::pair<const char*, const char*> cases[] = {
      {R"("gird": {})", "'gird'; did you mean 'grid'"},
      {R"("grid": {"roles.weight.format": []})", "grid.roles.weight.format: expected a list"},
      {R"("grid": {"roles.wieght.format": ["int8"]})", "'wieght'"},
      {R"("grid": {"rolls.weight.format": ["int8"]})", "unknown key 'rolls'; did you mean 'roles'"},
      {R"("grid": {"roles.weight.format": ["int88"]})",
       "s.json: point 0: roles.weight.format: unknown format 'int88'"},
      {R"("grid": {"roles.weight.format": ["int8"]}, "tie": [["a", "b"]])",
       "none of 'a', 'b' is a key of the grid"},
      {R"("grid": {"roles.weight.format": ["int8"], "roles.activation.format": ["int4", "int8"]}, "tie": [["roles.weight.format", "roles.activation.format"]])",
       "lists of different lengths"},
      {R"("eval_images": 0)", "eval_images: expected an integer from 1"},
      {R"("seeds": [])", "seeds: expected at least one seed"},
      {R"("seeds": [1.5])", "seeds"},
      {R"("seeds": [3], "grid": {"seed": [1, 2]})",
       "seeds: expected no list, as the grid or the points set 'seed'"},
      {R"("points": [{}], "tie": [["roles.weight.format", "roles.activation.format"]])",
       "tie: expected a key 'grid', whose lists it ties"},
      {R"("seeds": [9007199254740993])", "seeds"},
      {R"("base": {"numemu_recipe": 1, "x": 1})", "s.json: base: unknown key 'x'"},
      {R"("fold_batch_norm": 1)", "fold_batch_norm: expected true or false"},
      {R"("grid": {"roles.weight.format": ["mxfp4"], "roles.weight.granularity": ["channel"]})",
       "roles.weight.granularity: expected 'block', which mxfp4 implies"},
      {R"("points": [1])", "points: expected a list of objects"},
  };
  for (const auto& [text, message] : cases) {
    INFO(text);
    CHECK_THROWS_WITH(sweep(text), Contains(message));
  }
  CHECK_THROWS_WITH(parse_sweep("{}", "s.json"), Contains("numemu_sweep"));
}

// Settings of a point: roles follow their format, paths that lead nowhere are refused.

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

}  // namespace sweep_config_test
