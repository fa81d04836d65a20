// The key objectives of a recipe: names and objects, the canonical form, training options.
#include <string>
#include <vector>

#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "formats/joined.hpp"
#include "policies/recipe/update_json.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace objectives_test {

using namespace numemu;
using namespace numemu::policies;
using numemu::test::message_of;

namespace {

Recipe with(const std::string& objectives) {
  return Recipe::parse_text(
      R"j({"numemu_recipe": 1, "update": {"optimizer": "sgd"}, "objectives": )j" + objectives + "}",
      "r.json");
}

std::string refused(const std::string& objectives) {
  return message_of([&] { with(objectives); });
}

}  // namespace

TEST_CASE("objectives: names and objects have one canonical form", "[fast]") {
  const Json two = parse_json(R"j(["cross_entropy", "complement"])j", "t");
  for (const char* text :
       {R"j(["cross_entropy", "complement"])j", R"j(["cross_entropy", {"rule": "complement"}])j",
        R"j([{"rule": "cross_entropy", "optimizer": "sgd"},
                                {"rule": "complement", "optimizer": null}])j"}) {
    INFO(text);
    const Recipe recipe = with(text);
    CHECK(recipe.json()["objectives"] == two);
    CHECK(Recipe::parse(recipe.json(), "again").json() == recipe.json());
  }
  const char* const own = R"j(["cross_entropy", {"rule": "complement", "optimizer": "adamw"}])j";
  CHECK(with(own).json()["objectives"] == parse_json(own, "t"));
  CHECK(with(own).objectives()[1].optimizer == "adamw");
  // What a recipe without the key has.
  for (const char* text : {"null", R"j(["cross_entropy"])j"}) {
    INFO(text);
    CHECK(with(text).objectives().empty());
    CHECK_FALSE(with(text).json().contains("objectives"));
  }
  CHECK(with(R"j(["complement"])j").json().contains("objectives"));
  // Arguments, without those that are defaults.
  const Json arguments = with(R"j(["label_smoothing(0.1)",
      {"rule": "complement", "optimizer": "lion(0.9, beta2=0.9)"}])j")
                             .json()["objectives"];
  CHECK(arguments[0] == "label_smoothing");
  CHECK(arguments[1] == Json{{"rule", "complement"}, {"optimizer", "lion(0.9,0.9)"}});
  CHECK(refused(R"j(["label_smoothing(2)"])j") ==
        "r.json: objectives[0]: objective label_smoothing: share: expected a number from 0 to 1");
  CHECK(refused(R"j(["label_smoothing", "label_smoothing(0.2)"])j") ==
        "r.json: objectives[1]: expected each objective once, not label_smoothing again");
}

TEST_CASE("objectives: errors give the path and the nearest name", "[fast]") {
  const auto known = [](const std::vector<std::string>& names) {
    return "(known: " + joined(names, ", ") + ")";
  };
  CHECK(refused(R"j("complement")j") ==
        "r.json: objectives: expected a list of at least one objective, or null");
  CHECK(refused("[]") == "r.json: objectives: expected a list of at least one objective, or null");
  CHECK(refused(R"j(["cross_entropy", "complemnt"])j") ==
        "r.json: objectives[1]: unknown objective 'complemnt'; did you mean 'complement'? " +
            known(net::objective_names()));
  CHECK(refused(R"j([{"rule": "complemnt"}])j") ==
        "r.json: objectives[0].rule: unknown objective 'complemnt'; did you mean 'complement'? " +
            known(net::objective_names()));
  CHECK(refused(R"j([{"rule": "complement", "optimizer": "sdg"}])j") ==
        "r.json: objectives[0].optimizer: unknown optimizer 'sdg'; did you mean 'sgd'? " +
            known(net::optimizer_names()));
  CHECK(refused(R"j([{"optimizer": "sgd"}])j") == "r.json: objectives[0]: expected a key 'rule'");
  CHECK(refused(R"j([{"rule": "complement", "optimiser": "sgd"}])j") ==
        "r.json: objectives[0]: unknown key 'optimiser'; did you mean 'optimizer'?");
  CHECK(refused("[3]") ==
        "r.json: objectives[0]: expected an objective's name, or an object with the keys rule and "
        "optimizer");
  CHECK(refused(R"j(["complement", {"rule": "complement"}])j") ==
        "r.json: objectives[1].rule: expected each objective once, not complement again");
}

TEST_CASE("objectives: the training options get those of the recipe", "[fast]") {
  const Recipe recipe =
      with(R"j(["cross_entropy", {"rule": "complement", "optimizer": "adamw"}])j");
  net::TrainOptions options;
  use_objectives(with("null"), "r", options);
  CHECK(options.objectives == net::TrainOptions().objectives);
  use_objectives(recipe, "r", options);
  CHECK(options.objectives == std::vector<std::string>{"cross_entropy", "complement"});
  CHECK(options.objective_optimizers ==
        std::map<std::string, std::string>{{"complement", "adamw"}});
  CHECK_NOTHROW(use_objectives(recipe, "r", options));
  CHECK(message_of([&] { use_objectives(with(R"j(["complement"])j"), "r", options); }) ==
        "r: objectives: complement contradict those of the training options, cross_entropy "
        "complement");
}

}  // namespace objectives_test
