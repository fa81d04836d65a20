// Policies: their table in docs/recipes.md, the ways to write a choice, canonical forms, errors,
// state.
#include "policies/policy.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <set>

#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/canonical_json.hpp"
#include "policies/recipe/choices.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/option_cell.hpp"
#include "tests/policies/parsed.hpp"

namespace policy_test {

using namespace numemu;
using namespace numemu::policies;
using policies::test::join;
using policies::test::option_cell;
using policies::test::parsed;
using policies::test::refused;

namespace {

/// The row of a policy in docs/recipes.md.
std::string row_of(const PolicyKind& kind) {
  std::vector<std::string> options;
  if (kind.options != nullptr) {
    const std::unique_ptr<PolicyOptions> defaults = kind.options();
    for (const Option& option : defaults->list()) options.push_back(option_cell(option));
  }
  if (options.empty())
    options.emplace_back(kind.chosen_by != nullptr ? "those of the key" : "none");
  const std::string name = kind.name.empty() ? "" : fmt::format("`{}`", kind.name);
  return fmt::format("| `{}` | {} | {} | {} | {} |", kind.key, name, join(options, "<br>"),
                     kind.summary, kind.source);
}

std::optional<PolicyChoice> read(const std::string& text, const std::string& key = "penalty") {
  const Json json = parse_json(text, "r.json");
  return read_policy(JsonReader(json, "r.json"), key);
}

Json canonical(const std::string& text) { return policy_json(*read(text)); }

std::string message_of(const std::string& text, const std::string& key = "penalty") {
  return numemu::test::message_of([&] { read(text, key); });
}

constexpr TextKind kWord{"word", [](const std::string& text) {
                           if (text.empty()) throw Error("expected a word");
                           return text.substr(0, 3);
                         }};

/// Options of every type.
struct AllTypes final : PolicyOptions {
  double share = 0.5;
  std::int64_t steps = 3;
  bool warm = false;
  std::string kind = "mean", word = "wor";
  std::vector<Option> list() override {
    return {{"share", "a share", &share, 0, 1},
            {"steps", "a number of steps", &steps, 1, 100},
            {"warm", "a flag", &warm},
            {"kind", "a name", &kind, 0, 0, {"mean", "median"}},
            {"word", "any", &word, 0, 0, {}, &kWord}};
  }
};

constexpr auto kMakeAll = []() -> std::unique_ptr<PolicyOptions> {
  return std::make_unique<AllTypes>();
};
const PolicyKind kAll{"penalty", "all", "every type of option", "a test", kMakeAll};

}  // namespace

TEST_CASE("policies: docs/recipes.md has the row of each, and no other", "[fast]") {
  const std::string page = read_text(NUMEMU_SOURCE "/docs/recipes.md");
  const std::size_t begin = page.find("\n## Policies\n"), end = page.find("\n## ", begin + 1);
  REQUIRE(begin != page.npos);
  const std::string section = page.substr(begin, end - begin);
  for (const PolicyKind* kind : all_policies()) {
    INFO("expected in the section Policies of docs/recipes.md:\n" << row_of(*kind));
    CHECK(section.find("\n" + row_of(*kind) + "\n") != section.npos);
  }
  std::size_t rows = 0;
  for (std::size_t at = section.find("\n| `"); at != section.npos;
       at = section.find("\n| `", at + 1))
    ++rows;
  CHECK(rows == all_policies().size());
}

TEST_CASE("policies: docs/architecture.md has their order", "[fast]") {
  std::string order;
  int place = 0;
  for (const PolicySlot& slot : policy_slots())
    order += fmt::format("{}. `{}`\n", ++place, slot.key);
  INFO(order);
  const std::string page = read_text(NUMEMU_SOURCE "/docs/architecture.md");
  CHECK(page.find("\n\n" + order + std::to_string(place + 1) + ". roles, units") != page.npos);
}

TEST_CASE("policies: a row shows options of every type", "[fast]") {
  CHECK(row_of(kAll) ==
        "| `penalty` | `all` | `share`: 0.5, 0 to 1: a share<br>`steps`: 3, 1 to 100: a number of "
        "steps<br>`warm`: false, false or true: a flag<br>`kind`: mean, mean or median: a "
        "name<br>`word`: wor, a "
        "word: any | "
        "every type of option | a test |");
}

TEST_CASE("policies: each says what it is, with options that start in their range", "[fast]") {
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const PolicyKind* kind : all_policies()) {
    INFO(kind->key << " " << kind->name);
    CHECK(names.emplace(kind->key, kind->name).second);
    const auto& slots = policy_slots();
    CHECK(std::any_of(slots.begin(), slots.end(),
                      [&](const PolicySlot& slot) { return slot.key == kind->key; }));
    CHECK(&find_policy(kind->key, kind->name) == kind);
    CHECK_FALSE(kind->summary.empty());
    CHECK_FALSE(kind->source.empty());
    // Either the value of the key is read by its options, or the schema reads it.
    CHECK((kind->options == nullptr) == (kind->chosen_by != nullptr));
    if (kind->chosen_by != nullptr) continue;
    // The defaults as they are written are read back.
    const std::shared_ptr<PolicyOptions> defaults = kind->options();
    const Json json = policy_json({kind, defaults});
    const std::optional<PolicyChoice> back = read(json.dump(), std::string(kind->key));
    REQUIRE(back);
    CHECK(policy_json(*back) == json);
    if (!kind->name.empty()) CHECK(policy_text(*back) == kind->name);
    for (const Option& option : defaults->list()) CHECK_FALSE(option.help.empty());
  }
}

TEST_CASE("policies: a choice as text, as a call and as an object", "[fast]") {
  const Json usual = parse_json(R"j({"rule": "kure", "weight": 1, "target": 1.8})j", "t");
  CHECK(canonical(R"j("kure")j") == usual);
  CHECK(canonical(R"j({"rule": "kure"})j") == usual);
  CHECK(canonical(R"j({"rule": "kure", "weight": null})j") == usual);
  const Json two = parse_json(R"j({"rule": "kure", "weight": 2, "target": 1.8})j", "t");
  CHECK(canonical(R"j("kure(2)")j") == two);
  CHECK(canonical(R"j({"rule": "kure", "weight": 2})j") == two);
  CHECK(canonical(R"j({"rule": "kure(2)"})j") == two);
  CHECK(canonical(R"j(" kure( 2 , 1.8 ) ")j") == two);
  CHECK(canonical(R"j({"rule": "kure(7)", "weight": 2})j") == two);
  for (const char* none : {"null", R"j("none")j", "{}", R"j({"rule": "none"})j"}) {
    INFO(none);
    CHECK(message_of(none).empty());
    if (message_of(none).empty()) CHECK_FALSE(read(none));
  }
}

TEST_CASE("policies: the canonical text leaves out defaults at its end", "[fast]") {
  CHECK(policy_text(*read(R"j("kure")j")) == "kure");
  CHECK(policy_text(*read(R"j("kure(1,1.8)")j")) == "kure");
  CHECK(policy_text(*read(R"j("kure(0.5)")j")) == "kure(0.5)");
  CHECK(policy_text(*read(R"j({"rule": "kure", "target": 3})j")) == "kure(1,3)");
  CHECK(policy_text(*read(R"j("kure(target=3)")j")) == "kure(1,3)");
  const auto options = std::make_shared<AllTypes>();
  options->warm = true;
  CHECK(policy_text({&kAll, options}) == "all(0.5,3,true)");
  options->kind = "median";
  options->steps = 4;
  CHECK(policy_text({&kAll, options}) == "all(0.5,4,true,median)");
  CHECK(
      policy_json({&kAll, options}) ==
      parse_json(
          R"j({"rule": "all", "share": 0.5, "steps": 4, "warm": true, "kind": "median", "word": "wor"})j",
          "t"));
  for (const char* text : {"kure(0.1)", "kure(1e-7,2.5)", "kure(0.30000000000000004)"}) {
    INFO(text);
    const std::string canonical_text = policy_text(*read(Json(text).dump()));
    CHECK(policy_text(*read(Json(canonical_text).dump())) == canonical_text);
    CHECK(canonical(Json(canonical_text).dump()) == canonical(Json(text).dump()));
  }
}

TEST_CASE("policies: a recipe's canonical form is read back", "[fast]") {
  const std::string layers =
      R"j("layers": [{"match": "fc*", "penalty": "kure(2)"}, {"match": "fc1", "penalty": null}])j";
  const Json json = parsed(R"j("penalty": "kure(0.5)", )j" + layers);
  CHECK(json["penalty"] == parse_json(R"j({"rule": "kure", "weight": 0.5, "target": 1.8})j", "t"));
  CHECK(json["layers"][0]["penalty"]["weight"] == 2);
  CHECK(json["layers"][1]["penalty"].is_null());
  CHECK(json["layers"][1].contains("penalty"));
  CHECK(Recipe::parse(json, "again").json() == json);
  // A recipe without policies has the canonical form of before.
  for (const char* none : {R"j("penalty": null)j", R"j("penalty": "none")j", R"j("seed": 0)j",
                           R"j("norm": null, "exchange": null, "update": {"rule": null})j"}) {
    INFO(none);
    const Json without = parsed(none);
    for (const char* key : {"penalty", "norm", "exchange", "saved"})
      CHECK_FALSE(without.contains(key));
    CHECK_FALSE(without["update"].contains("rule"));
  }
}

TEST_CASE("policies: a layer has the last choice that matches it", "[fast]") {
  const Recipe recipe = Recipe::parse_text(
      R"j({"numemu_recipe": 1, "penalty": "kure(0.5)",
          "layers": [{"match": "fc*", "penalty": "kure(2)"}, {"match": "fc2", "penalty": null},
                     {"match": "fc3", "roles": {"weight": {"format": "int8"}}}]})j",
      "r");
  const auto weight = [&](const char* layer) {
    const std::optional<PolicyChoice> choice = recipe.policies(layer)[0];
    return choice ? policy_text(*choice) : "none";
  };
  CHECK(policy_slots()[0].key == "penalty");
  CHECK(weight("conv1") == "kure(0.5)");
  CHECK(weight("fc1") == "kure(2)");
  CHECK(weight("fc2") == "none");
  CHECK(weight("fc3") == "kure(2)");
}

TEST_CASE("policies: errors give the path in JSON, and the nearest name", "[fast]") {
  CHECK(refused(R"j("penalty": "kur")j") ==
        "r.json: penalty: unknown penalty 'kur'; did you mean 'kure'?");
  CHECK(refused(R"j("penalty": {"rule": "kure", "wieght": 1})j") ==
        "r.json: penalty: unknown key 'wieght'; did you mean 'weight'?");
  CHECK(refused(R"j("penalty": {"rule": "kure", "weight": -1})j") ==
        "r.json: penalty.weight: expected a number from 0 to 1000000");
  CHECK(refused(R"j("penalty": {"rule": "kure", "weight": "1"})j") ==
        "r.json: penalty.weight: expected a number from 0 to 1000000");
  CHECK(refused(R"j("layers": [{"match": "*", "penalty": {"rule": "kure", "target": 0}}])j") ==
        "r.json: layers[0].penalty.target: expected a number from 1 to 1000000");
  CHECK(refused(R"j("penalty": "kure(1,2,3)")j") ==
        "r.json: penalty: kure: expected at most 2 options, found '3'");
  for (const char* text :
       {R"j("kure(x)")j", R"j("kure()")j", R"j("kure(-1)")j", R"j("kure(nan)")j"}) {
    INFO(text);
    CHECK(message_of(text) == "r.json: kure: weight: expected a number from 0 to 1000000");
  }
  CHECK(refused(R"j("layers": [{"match": "*", "penalty": {"rule": "kure(1,0)"}}])j") ==
        "r.json: layers[0].penalty.rule: kure: target: expected a number from 1 to 1000000");
  CHECK(message_of(R"j({"rule": null})j") == "r.json: expected a key 'rule'");
  CHECK(message_of(R"j({"weight": 2})j") == "r.json: expected a key 'rule'");
  CHECK(message_of(R"j({"rule": "none", "weight": 2})j").find("unknown key 'weight'") !=
        std::string::npos);
  CHECK(message_of(R"j({"rule": 3})j") == "r.json: rule: expected a string");
  for (const char* text : {"3", "true", "[]", R"j(["kure"])j"}) {
    INFO(text);
    CHECK_THAT(message_of(text), Catch::StartsWith("r.json: expected a rule such as \"") &&
                                     Catch::EndsWith("\", an object or null"));
  }
  CHECK_THROWS_WITH(find_policy("penalty", "all"), Catch::StartsWith("unknown penalty 'all'"));
  for (const char* text : {R"j("mean")j", R"j({"rule": "mean"})j", R"j("none")j"})
    CHECK_FALSE(read_policy(JsonReader(parse_json(text, "r.json"), "r.json"), "exchange", "mean"));
  CHECK(parsed(R"j("exchange": "mean")j") == parsed(R"j("exchange": null)j"));
  // Keys without any policy have messages, too; a key whose policy has no name takes no text.
  for (const PolicySlot& slot : policy_slots()) {
    if (slot.typed) continue;
    INFO(slot.key);
    CHECK(message_of("3", std::string(slot.key)).find("r.json: expected ") == 0);
    std::set<std::string_view> names;
    for (const PolicyKind* kind : all_policies()) {
      if (kind->key == slot.key) names.insert(kind->name);
    }
    const bool unnamed = names == std::set<std::string_view>{""};
    CHECK_THAT(message_of(R"j("nobody")j", std::string(slot.key)),
               Catch::Contains(unnamed ? "expected an object or null" : "unknown "));
  }
}

TEST_CASE("policies: tensors of a state come back, and damaged ones are refused", "[fast]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const StateTensors kept = {{"conv1.weight", {1, -0.0f, 0x1p-149f}},
                             {"a/b", {kInfinity, std::numeric_limits<float>::quiet_NaN()}},
                             {"empty", {}}};
  net::NamedState state = {{"other/x", std::string(3, 'x')}, {"policy2/x", std::string(5, 'x')}};
  save_tensors("policy", kept, state);
  CHECK(state.size() == 5);
  StateTensors back = {{"stale", {4}}};
  load_tensors("policy", state, back);
  REQUIRE(back.size() == kept.size());
  for (const auto& [name, values] : kept) {
    INFO(name);
    REQUIRE(back.at(name).size() == values.size());
    const bool same = values.empty() || std::memcmp(back.at(name).data(), values.data(),
                                                    values.size() * sizeof(float)) == 0;
    CHECK(same);
  }
  load_tensors("nobody", state, back);
  CHECK(back.empty());
  for (const std::size_t bytes : {1, 3, 6}) {
    net::NamedState damaged = {{"policy/velocity", std::string(bytes, 'x')}};
    CHECK_THROWS_WITH(load_tensors("policy", damaged, back),
                      "state policy/velocity: expected a multiple of 4 bytes");
  }
}

}  // namespace policy_test
