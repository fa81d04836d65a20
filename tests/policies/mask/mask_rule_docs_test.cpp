// docs/masks.md: every rule and option stands in it, and every recipe in it is read.

#include "formats/storage/json_reader.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/catch.hpp"

namespace mask_rule_docs_test {

using namespace numemu;
using namespace numemu::policies;

TEST_CASE("masks.md: every rule with its options, and no other", "[fast]") {
  const std::string page = read_text(NUMEMU_SOURCE "/docs/masks.md");
  std::size_t rows = 0;
  for (const MaskRule* rule : all_mask_rules()) {
    INFO(rule->name);
    CHECK(page.find("\n| `" + std::string(rule->name) + "(") != page.npos);
    ++rows;
    for (const std::string_view option : rule->options) {
      INFO(option);
      CHECK(page.find("\n| `" + std::string(option) + "=`") != page.npos);
    }
  }
  std::size_t named = 0;
  for (std::size_t at = page.find(")` | "); at != page.npos; at = page.find(")` | ", at + 1))
    ++named;
  CHECK(named == rows);
}

TEST_CASE("masks.md: its recipe runs all products of a layer on the sparse unit", "[fast]") {
  const std::string page = read_text(NUMEMU_SOURCE "/docs/masks.md");
  const std::size_t begin = page.find("```json\n") + 8, end = page.find("\n```", begin);
  const Recipe recipe = Recipe::parse_text(page.substr(begin, end - begin), "masks.md");
  const LayerRecipe layer = recipe.layer("fc");
  CHECK(layer.masks[RolePart::weight]);
  CHECK(layer.masks[RolePart::gradient_wgrad]);
  CHECK(!layer.masks[RolePart::gradient_dgrad]);
  CHECK(layer.dgrad->row().name.ends_with("sp24"));
}

}  // namespace mask_rule_docs_test
