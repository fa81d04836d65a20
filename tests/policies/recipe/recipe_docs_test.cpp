// docs/recipes.md: every recipe in it is read, and every key and value of the schema stands in it.
#include <nlohmann/json.hpp>

#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/recipe.hpp"
#include "policies/recipe/role_json.hpp"
#include "policies/scale_rule.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::policies;

namespace {

std::string page() { return read_text(NUMEMU_SOURCE "/docs/recipes.md"); }

std::vector<std::string> recipes() {
  const std::string text = page(), open = "```json\n", close = "\n```";
  std::vector<std::string> blocks;
  for (std::size_t at = text.find(open); at != text.npos; at = text.find(open, at)) {
    at += open.size();
    blocks.push_back(text.substr(at, text.find(close, at) - at));
  }
  return blocks;
}

/// Every key of an object and of the objects in it.
void collect_keys(const Json& json, std::vector<std::string>& keys) {
  if (json.is_array())
    for (const Json& item : json) collect_keys(item, keys);
  if (!json.is_object()) return;
  for (const auto& item : json.items()) {
    keys.push_back(item.key());
    collect_keys(item.value(), keys);
  }
}

}  // namespace

TEST_CASE("docs: every recipe is read and comes back from its canonical form", "[fast]") {
  CHECK(recipes().size() >= 8);
  for (const std::string& text : recipes()) {
    INFO(text);
    const Recipe recipe = Recipe::parse_text(text, "docs/recipes.md");
    CHECK(Recipe::parse(recipe.json(), "docs/recipes.md").json() == recipe.json());
    CHECK_NOTHROW(recipe.layer("conv1"));
    CHECK_NOTHROW(recipe.layer("fc2"));
  }
}

TEST_CASE("docs: every key, role and scale rule stands on the page", "[fast]") {
  const std::string text = page();
  std::vector<std::string> names = {"block", "ste", "match"};
  collect_keys(
      Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}})", "r")
          .json(),
      names);
  for (const RoleSchema& schema : role_schemas()) names.push_back(schema.name);
  for (const ScaleRule* rule : all_scale_rules()) names.push_back(rule->name);
  CHECK(names.size() > 30);
  for (const std::string& name : names) {
    INFO(name);
    const bool there =
        text.find("`" + name + "`") != text.npos || text.find("\"" + name + "\"") != text.npos;
    CHECK(there);
  }
}
