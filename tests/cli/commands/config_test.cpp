// numemu config: the canonical form of recipes and sweeps, and units beside the recipe.

#include <filesystem>

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace config_test {

using namespace numemu::test;
using numemu::Json;

TEST_CASE("config: a recipe with every default and full names", "[fast]") {
  const Scratch s;
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "mxfp4"}},
                       "gemms": {"fprop": {"unit": "exact"}}, "update": {"loss_scale": "dynamic"}})");
  const Result printed = s.run("config --print r.json");
  CHECK(printed.code == 0);
  CHECK(printed.err.empty());
  const Json json = Json::parse(printed.out);
  CHECK(json["roles"]["weight"]["scale"] == "floor");
  CHECK(json["roles"]["exchange"].is_null());
  CHECK(json["gemms"]["fprop"]["unit"] == "neutral.exact");
  CHECK(json["update"]["loss_scale"] == "dynamic(65536,2000)");
  CHECK(json["calibrate"]["rule"] == "absmax");
  s.file("again.json", printed.out);
  CHECK(s.run("config --print again.json").out == printed.out);
}

TEST_CASE("config: a unit's file is sought beside the recipe", "[fast]") {
  const Scratch s;
  std::filesystem::create_directory(s.path + "/folder");
  s.file(
      "folder/unit.json",
      R"({"numemu_unit": 1, "name": "my.unit", "core": "chain", "accumulator": {"format": "float16"}})");
  s.file("folder/r.json", R"({"numemu_recipe": 1, "gemms": {"fprop": {"unit": "unit.json"}}})");
  const Result printed = s.run("config --print folder/r.json");
  CHECK(printed.code == 0);
  CHECK(Json::parse(printed.out)["gemms"]["fprop"]["unit"]["name"] == "my.unit");
}

TEST_CASE("config: a shipped recipe by its name", "[fast]") {
  const Scratch s;
  const Result named = s.run("config --print mxfp4");
  CHECK(named.code == 0);
  CHECK(named.out == s.run("config --print '" NUMEMU_SOURCE "/data/recipes/mxfp4.json'").out);
  CHECK_THAT(s.run("eval --help").out,
             Catch::Contains("--recipe NAME|R.json") && Catch::Contains("int8-static"));
  s.file("mxfp4", R"({"numemu_recipe": 1, "seed": 5})");  // a file of that name is meant
  CHECK(Json::parse(s.run("config --print mxfp4").out)["seed"] == 5);
}

}  // namespace config_test
