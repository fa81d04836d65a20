// Keys of roles beside `roles`: where they go, and what is refused.
#include "policies/recipe/choices.hpp"

#include "formats/error.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/catch.hpp"
#include "tests/policies/parsed.hpp"

namespace choices_test {

using namespace numemu;
using namespace numemu::policies;
using policies::test::parsed;
using policies::test::refused;

TEST_CASE("choices: saved and exchange beside roles are roles", "[fast]") {
  const std::string role = R"j({"format": "int8", "rounding": "sr(4)", "granularity": "tensor"})j";
  for (const std::string name : {"saved", "exchange"}) {
    INFO(name);
    const std::string key = '"' + name + "\": ";
    const Json json = parsed(key + role);
    CHECK(json == parsed("\"roles\": {" + key + role + "}"));
    CHECK(json == parsed(key + role + ", \"roles\": {" + key + "null}"));
    CHECK(json == parsed(key + role + ", \"roles\": null"));
    CHECK(json["roles"][name]["format"] == "int8");
    CHECK_FALSE(json.contains(name));
    CHECK(Recipe::parse(json, "again").json() == json);
    CHECK(parsed(key + "null") == parsed("\"seed\": 0"));
    CHECK(parsed(key + "\"none\"") == parsed("\"seed\": 0"));
    // Other roles stay where they are.
    CHECK(parsed(key + role + R"j(, "roles": {"weight": {"format": "int4"}})j") ==
          parsed("\"roles\": {" + key + role + R"j(, "weight": {"format": "int4"}})j"));
  }
  CHECK(parsed("\"saved\": " + role + ", \"exchange\": " + role) ==
        parsed("\"roles\": {\"saved\": " + role + ", \"exchange\": " + role + "}"));
}

TEST_CASE("choices: a text that is no format is a policy's name", "[fast]") {
  CHECK(refused(R"j("saved": "gruop")j").find("did you mean 'group'") != std::string::npos);
  CHECK(refused(R"j("saved": "int8")j").find("r.json: saved: expected an object or null") == 0);
}

TEST_CASE("choices: a role in two places, or of another type, is refused", "[fast]") {
  for (const std::string name : {"saved", "exchange"}) {
    INFO(name);
    const std::string key = '"' + name + "\": ";
    CHECK(refused(key + R"j({"format": "int8"}, "roles": {)j" + key + R"j({"format": "int8"}})j") ==
          "r.json: " + name + ": expected the keys of a format here or in roles." + name +
              ", not in both");
    CHECK(refused(key + R"j({"format": "int88"})j").find("r.json: roles." + name + ".format: ") ==
          0);
    CHECK(refused(key + "3").find("r.json: " + name + ": expected ") == 0);
    CHECK(refused(key + R"j({"format": "int8"}, "roles": 3)j") ==
          "r.json: roles: expected an object");
  }
  // Of the whole network only.
  CHECK(refused(R"j("layers": [{"match": "*", "exchange": {"format": "int8"}}])j")
            .find("r.json: layers[0]: unknown key 'exchange'") == 0);
  const std::string role = R"j("saved": {"format": "int8"})j";
  CHECK(parsed(R"j("layers": [{"match": "*", )j" + role + "}]") ==
        parsed(R"j("layers": [{"match": "*", "roles": {)j" + role + "}}]"));
  CHECK(parsed(R"j("saved": "group", "layers": [{"match": "*", "saved": "none"}])j") ==
        parsed(R"j("saved": "group", "layers": [{"match": "*", "saved": null}])j"));
  CHECK(refused(R"j("saved": {"formt": "int8"})j") ==
        "r.json: saved: unknown key 'formt'; did you mean 'format'?");
  CHECK(refused(R"j("saved": {"format": "int8", "rule": "x"})j")
            .find("r.json: saved.rule: unknown saved 'x'") == 0);
  CHECK(refused(R"j("exchange": {"format": "int8", "rule": "nobody"})j")
            .find("r.json: exchange.rule: unknown exchange 'nobody'") == 0);
  CHECK(refused(R"j("exchange": {"formt": "int8"})j") == "r.json: exchange: expected a key 'rule'");
}

TEST_CASE("choices: none is no policy of every key", "[fast]") {
  for (const PolicySlot& slot : policy_slots()) {
    if (slot.typed) continue;
    INFO(slot.key);
    const std::string none = slot.member().empty() ? "\"none\"" : R"j({"rule": "none"})j";
    CHECK(parsed('"' + std::string(slot.object()) + "\": " + none) == parsed("\"seed\": 0"));
  }
}

TEST_CASE("choices: an entry of layers takes the policies of layers, and of update the rule alone",
          "[fast]") {
  for (const PolicySlot& slot : policy_slots()) {
    INFO(slot.key);
    const std::string key(slot.object());
    const std::string entry =
        slot.member().empty() ? "null" : "{\"" + std::string(slot.member()) + "\": null}";
    const std::string message =
        refused(R"j("layers": [{"match": "*", ")j" + key + "\": " + entry + "}]");
    CHECK(message.empty() == slot.of_layers);
  }
  CHECK(refused(R"j("layers": [{"match": "*", "update": {"master": "bfloat16"}}])j")
            .find("r.json: layers[0].update: unknown key 'master'") == 0);
  CHECK(refused(R"j("layers": [{"match": "*", "update": 3}])j") ==
        "r.json: layers[0].update: expected an object");
}

}  // namespace choices_test
