// docs/recipes.md: its recipes parse, and it documents every key and value of the schema.
// Every recipe of every page runs.
#include <cmath>
#include <filesystem>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/recipe.hpp"
#include "policies/recipe/role_json.hpp"
#include "tests/catch.hpp"
#include "tests/policies/option_cell.hpp"

namespace recipe_docs_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

std::string page() { return read_text(NUMEMU_SOURCE "/docs/recipes.md"); }

std::vector<std::string> code_blocks(const std::string& text) {
  const std::string open = "```json\n", close = "\n```";
  std::vector<std::string> blocks;
  for (std::size_t at = text.find(open); at != text.npos; at = text.find(open, at)) {
    at += open.size();
    blocks.push_back(text.substr(at, text.find(close, at) - at));
  }
  return blocks;
}
std::vector<std::string> recipes() { return code_blocks(page()); }

/// The pages of the documentation and of the project's front.
std::vector<std::filesystem::path> pages() {
  const std::filesystem::path root = NUMEMU_SOURCE;
  std::vector<std::filesystem::path> list = {root / "README.md"};
  for (const auto& file : std::filesystem::recursive_directory_iterator(root / "docs"))
    if (file.path().extension() == ".md") list.push_back(file.path());
  return list;
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

TEST_CASE("docs: every option of an optimizer or objective has its row", "[fast]") {
  const std::string text = read_text(NUMEMU_SOURCE "/docs/training.md");
  const auto check = [&](const std::string& name, OptionSet& options) {
    for (const Option& option : options.list())
      CHECK_THAT(text, Catch::Contains("| `" + name + "` | " + policies::test::option_cell(option) +
                                       " |"));
  };
  for (const std::string& name : net::optimizer_names())
    check(name, *net::options_of_optimizer(name));
  for (const std::string& name : net::objective_names()) {
    const net::Objective objective = net::find_objective(name);
    if (objective.options != nullptr) check(name, *objective.options());
  }
}

TEST_CASE("docs: every role has its row", "[fast]") {
  const std::string text = page();
  const std::size_t begin = text.find("\n| role | tensors |\n"), end = text.find("\n\n", begin);
  REQUIRE(begin != text.npos);
  const std::string table = text.substr(begin, end - begin);
  for (const std::string& name : role_names()) CHECK_THAT(table, Catch::Contains("`" + name + "`"));
}

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
  for (const std::string& role : role_names()) names.push_back(role);
  for (const ScaleRule* rule : all_scale_rules()) names.push_back(rule->name);
  CHECK(names.size() > 30);
  for (const std::string& name : names) {
    INFO(name);
    const bool there =
        text.find("`" + name + "`") != text.npos || text.find("\"" + name + "\"") != text.npos;
    CHECK(there);
  }
}

TEST_CASE("docs: every recipe of every page runs on the network that it is written for", "[fast]") {
  constexpr std::int64_t kImages = 4;
  int ran = 0;
  for (const std::filesystem::path& file : pages()) {
    for (const std::string& text : code_blocks(read_text(file.string()))) {
      if (text.find("numemu_recipe") == text.npos || text.find("numemu_sweep") != text.npos)
        continue;
      INFO(file.string() << "\n" << text);
      // The recipe with masks is one for mlp; lenet has conv1, fc1, fc2 and fc3.
      const bool mlp = file.filename() == "masks.md";
      net::Graph graph = net::build_net(mlp ? "mlp" : "lenet", {28, 28, 1}, 10);
      net::initialize(graph, 1);
      net::Tensor images({kImages, 28, 28, 1});
      for (std::size_t i = 0; i < images.data.size(); ++i)
        images.data[i] = static_cast<float>(RandomSource{}.uniform(i));
      const Recipe recipe = Recipe::parse_text(text, file.string());
      for (std::size_t stage = 0; stage <= recipe.stages().size(); ++stage) {
        RecipeNumerics numerics(recipe.in_stage(stage), graph, file.string());
        numerics.freeze(graph, float_reference(graph, images));
        const net::Tensor logits = net::forward(graph, images, numerics);
        CHECK(std::all_of(logits.data.begin(), logits.data.end(),
                          [](float v) { return std::isfinite(v); }));
      }
      ++ran;
    }
  }
  CHECK(ran >= 10);
}

TEST_CASE("docs: FP8 on an H100 keeps the first layer out of it", "[fast]") {
  for (const std::string& text : recipes()) {
    if (text.find("h100") == text.npos) continue;
    CHECK_FALSE(Recipe::parse_text(text, "docs/recipes.md").layer("conv1")[RolePart::weight]);
  }
}

TEST_CASE("docs: the recipes for inference are on their page and serve images and text", "[fast]") {
  const std::string text = read_text(NUMEMU_SOURCE "/docs/inference-recipes.md");
  const net::Graph images = net::build_net("resnet20", {32, 32, 3}, 10),
                   characters = net::build_net("char-transformer", {64}, 65);
  int found = 0;
  for (const auto& file : std::filesystem::directory_iterator(NUMEMU_SOURCE "/data/recipes")) {
    const std::string path = file.path().string();
    INFO(path);
    const Recipe recipe = Recipe::parse_text(read_text(path), path);
    const Json& roles = recipe.json()["roles"];
    if (!roles["gradient"].is_null() || !roles["state"].is_null() || recipe.update().master)
      continue;  // of training
    CHECK(text.find("| `" + file.path().stem().string() + "` |") != text.npos);
    CHECK_NOTHROW(RecipeNumerics(recipe, images, path));
    CHECK_NOTHROW(RecipeNumerics(recipe, characters, path));
    ++found;
  }
  CHECK(found == 9);
}

}  // namespace recipe_docs_test
