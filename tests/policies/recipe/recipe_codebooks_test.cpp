// A recipe is known by the entries of its codebooks, not by the names of their files alone.
#include "formats/storage/npy.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace recipe_codebooks_test {

using namespace numemu;
using namespace numemu::policies;

TEST_CASE("recipe codebooks: entries are a part of the recipe, wherever it names them", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const std::string name = "codebook(" + (folder / "c.npy") + ")";
  const auto write = [&](double largest) {
    const double entries[] = {-1, 0, largest};
    write_npy(folder / "c.npy", ArrayType::float64, {3}, entries);
  };
  const auto parsed = [&](const std::string& parts) {
    return Recipe::parse_text(R"({"numemu_recipe": 1, )" + parts + "}", "r.json");
  };
  const std::string role = R"({"weight": {"format": ")" + name + R"("}})";
  for (const std::string& parts :
       {R"("roles": )" + role, R"("layers": [{"match": "*", "roles": )" + role + "}]",
        R"("stages": [{"from": {"epoch": 1}, "patch": {"roles": )" + role + "}}]"}) {
    INFO(parts);
    write(1);
    const Json first = parsed(parts).json();
    CHECK(Recipe::parse(first, "r.json").json() == first);
    CHECK(parsed(parts).last_stage().json()["codebooks"][name].text().size() == 64);
    write(2);
    CHECK(parsed(parts).json() != first);
    CHECK_THROWS_WITH(Recipe::parse(first, "r.json"), Catch::Contains("r.json: ") &&
                                                          Catch::Contains("codebooks") &&
                                                          Catch::Contains("the digest of"));
  }
  CHECK_FALSE(Recipe().json().contains("codebooks"));
  CHECK_THROWS_WITH(parsed(R"("codebooks": 1)"), Catch::Contains("digests by name"));
}

}  // namespace recipe_codebooks_test
