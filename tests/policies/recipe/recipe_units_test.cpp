// Units of a recipe: names, files, objects, tables of products.
#include "policies/recipe/recipe_units.hpp"

#include <filesystem>

#include "emu/unit/description/json.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace recipe_units_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;

namespace {

constexpr const char* kChain =
    R"({"numemu_unit": 1, "name": "my.chain", "core": "chain", "accumulator": {"format": "float16"}})";

Json read(RecipeUnits& units, const std::string& text) {
  const Json json = parse_json(text, "r.json");
  return units.read(JsonReader(json, "r.json"));
}

/// 2-bit operands whose product is wrong by `error` everywhere.
unit::UnitDescription table_unit(int error) {
  unit::UnitDescription u;
  u.name = "my.table";
  u.core = unit::CoreKind::table;
  u.a = u.b = &find_format("uint2");
  std::vector<std::int32_t> products;
  for (int i = 0; i < 16; ++i) products.push_back((i >> 2) * (i & 3) + error);
  u.products = std::make_shared<const std::vector<std::int32_t>>(products);
  return u;
}

}  // namespace

TEST_CASE("recipe units: names become full names and stay the catalogue's", "[fast]") {
  RecipeUnits units("");
  CHECK(read(units, "null") == "neutral.f32.sequential");
  CHECK(read(units, R"("exact")") == "neutral.exact");
  CHECK(units.find("neutral.exact").get() == &unit::find_unit("exact"));
  CHECK_THROWS_WITH(read(units, R"("exat")"), Contains("r.json: unknown unit 'exat'"));
  CHECK_THROWS_WITH(read(units, "3"), Contains("r.json: expected a string"));
}

TEST_CASE("recipe units: an object and a file are the same unit", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  numemu::test::write_file(folder / "chain.json", kChain);
  RecipeUnits units(folder.path());
  const Json object = read(units, kChain), file = read(units, R"("chain.json")");
  CHECK(object == file);
  CHECK(object["accumulator"]["format"] == "float16");
  CHECK(object["group"] == 0);  // defaults that the canonical form writes out
  CHECK(read(units, object.dump()) == object);
  const auto unit = units.find(object);
  CHECK(unit == units.find(file));
  CHECK(unit->row().name == "my.chain");
  CHECK(unit->d_format()->name == "float16");
}

TEST_CASE("recipe units: wrong descriptions name the file or the key", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  numemu::test::write_file(folder / "bad.json", R"({"numemu_unit": 1, "core": "fusd"})");
  RecipeUnits units(folder.path());
  CHECK_THROWS_WITH(read(units, R"("bad.json")"), Contains("bad.json: core") && Contains("fused"));
  CHECK_THROWS_WITH(read(units, R"("none.json")"), Contains("none.json: cannot be opened"));
  CHECK_THROWS_WITH(read(units, R"({"numemu_unit": 1, "cor": "fused"})"),
                    Contains("r.json: unknown key 'cor'"));
  CHECK_THROWS_WITH(read(units, R"({"core": "fused"})"), Contains("numemu_unit"));
  CHECK_THROWS_WITH(read(units, R"({"numemu_unit": 1, "core": "exact", "name": "neutral.exact",
                                    "accumulator": {"format": "float32"}})"),
                    Catch::StartsWith("r.json: unit neutral.exact: name: "));
}

TEST_CASE("recipe units: a table of products is known by its digest", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "units");
  unit::write_description(table_unit(0), folder / "units/table.json");
  RecipeUnits units(folder.path());
  const Json canonical = read(units, R"("units/table.json")");
  CHECK(canonical["products"] == "units/table.products.npy");
  CHECK(canonical["products_sha256"].get<std::string>().size() == 64);
  RecipeUnits again(folder.path());
  CHECK(read(again, canonical.dump()) == canonical);
  unit::write_description(table_unit(1), folder / "units/table.json");
  RecipeUnits changed(folder.path());
  CHECK_THROWS_WITH(read(changed, canonical.dump()),
                    Contains("expected the table with the digest"));
  CHECK(read(changed, R"("units/table.json")")["products_sha256"] != canonical["products_sha256"]);
}

TEST_CASE("recipe units: gemms of a recipe and patches of them", "[fast]") {
  RecipeUnits units("");
  const auto gemms = [&](const std::string& text) {
    const Json json = parse_json(text, "r.json");
    return canonical_gemms(JsonReader(json, "r.json"), units);
  };
  const Json canonical =
      gemms(R"({"fprop": {"unit": "exact"}, "wgrad": {"unit": )" + std::string(kChain) + "}}");
  CHECK(canonical["fprop"]["unit"] == "neutral.exact");
  CHECK(canonical["dgrad"]["unit"] == "neutral.f32.sequential");
  LayerRecipe layer;
  read_gemms(canonical, units, layer);
  CHECK(layer.fprop->row().name == "neutral.exact");
  CHECK(layer.dgrad->row().name == "neutral.f32.sequential");
  CHECK(layer.wgrad->row().name == "my.chain");
  CHECK_THROWS_WITH(gemms(R"({"forward": null})"), Contains("'forward'"));
  CHECK_THROWS_WITH(gemms(R"({"fprop": {"units": null}})"), Contains("did you mean 'unit'"));
  const Json patch = parse_json(R"({"wgrad": null, "fprop": {"unit": "exact"}})", "p");
  const Json patches = canonical_gemm_patches(JsonReader(patch, "p"), units);
  CHECK(patches.size() == 2);
  CHECK(patches["wgrad"].is_null());
  CHECK(patches["fprop"]["unit"] == "neutral.exact");
}

}  // namespace recipe_units_test
