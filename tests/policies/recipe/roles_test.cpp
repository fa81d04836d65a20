// All roles together: names, split gradients, the typed view, patches.
#include "policies/recipe/roles.hpp"

#include <algorithm>

#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"

namespace roles_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;

namespace {

Json canonical(const std::string& text) {
  const Json json = parse_json(text, "r.json");
  return canonical_roles(JsonReader(json, "r.json"));
}
LayerRecipe typed(const std::string& text) {
  LayerRecipe layer;
  read_roles(canonical(text), layer);
  return layer;
}

}  // namespace

TEST_CASE("roles: every role of the schema is there and null by default", "[fast]") {
  const Json roles = canonical("null");
  // Of every recipe, whose keys and those of its rows hash them: a role that comes later is
  // optional.
  const std::vector<std::string> always = {"weight", "activation", "gradient", "vector",
                                           "output", "saved",      "state",    "exchange"};
  CHECK(roles.size() == always.size());
  std::vector<std::string> first = role_names();
  first.resize(always.size());
  CHECK(first == always);
  for (const RoleRow& row : role_table()) {
    INFO(row.name());
    const bool optional = std::ranges::find(always, row.name()) == always.end();
    CHECK(row.optional == optional);
    CHECK(roles.contains(row.name()) == !optional);
    if (!optional) CHECK(roles[row.name()].is_null());
  }
  CHECK_THROWS_WITH(canonical(R"({"weights": null})"), Contains("did you mean 'weight'"));
  CHECK_THROWS_WITH(canonical(R"({"weight": "int4"})"),
                    Contains(R"(weight: expected an object or null, as in {"format": "int4"})"));
  CHECK_THROWS_WITH(canonical(R"({"weight": "e4m3fn"})"),
                    Contains(R"({"format": "float8_e4m3fn"})"));
  CHECK_THROWS_WITH(canonical(R"({"weight": "mxfp4"})"), Contains(R"({"format": "mxfp4"})"));
  for (const char* other : {"4", "true", "[]", R"("nonsense")"}) {
    CHECK_THROWS_WITH(canonical(R"({"weight": )" + std::string(other) + "}"),
                      Contains(R"(as in {"format": "int8"})"));
  }
}

TEST_CASE("roles: each role reaches its place in the typed view", "[fast]") {
  const LayerRecipe layer = typed(
      R"({"weight": {"format": "int2"}, "activation": {"format": "int3"}, "gradient": {"format": "int4"},
          "vector": {"format": "int5"}, "output": {"format": "int6"}, "saved": {"format": "int7"},
          "state": {"format": "int8"}, "exchange": {"format": "mxfp4"}})");
  CHECK(layer[RolePart::weight]->format->bits == 2);
  CHECK(layer[RolePart::activation]->format->bits == 3);
  CHECK(layer[RolePart::gradient_dgrad]->format->bits == 4);
  CHECK(layer[RolePart::gradient_wgrad]->format->bits == 4);
  CHECK(layer[RolePart::vector]->format->bits == 5);
  CHECK(layer[RolePart::output]->format->bits == 6);
  CHECK(layer[RolePart::saved]->format->bits == 7);
  CHECK(layer[RolePart::state_first]->format->bits == 8);
  CHECK(layer[RolePart::exchange]->block->name == "mxfp4");
}

TEST_CASE("roles: keys and values follow the activation unless the recipe has them", "[fast]") {
  const LayerRecipe plain = typed(R"({"activation": {"format": "int3"}})");
  CHECK(plain[RolePart::key]->format->bits == 3);
  CHECK(plain[RolePart::value]->format->bits == 3);
  CHECK_FALSE(plain.apart(net::Role::key));
  const char* cache = R"({"activation": {"format": "int8"}, "key": null,
      "value": {"format": "int4", "granularity": "row"}, "embedding": {"format": "int2"}})";
  const LayerRecipe apart = typed(cache);
  CHECK_FALSE(apart[RolePart::key]);
  CHECK(apart.apart(net::Role::key));
  CHECK(apart[RolePart::value]->format->bits == 4);
  CHECK(apart[RolePart::embedding]->format->bits == 2);
  const Json json = canonical(cache);
  CHECK(json["key"].is_null());
  CHECK(json.contains("key"));
  CHECK(canonical(json.dump()) == json);
  CHECK_THROWS_WITH(canonical(R"({"keys": null})"), Contains("did you mean 'key'"));
  CHECK_THROWS_WITH(canonical(R"({"embeding": null})"), Contains("did you mean 'embedding'"));
}

TEST_CASE("roles: a gradient may be split", "[fast]") {
  const char* split = R"({"gradient": {"dgrad": {"format": "int8"}}})";
  CHECK(typed(split)[RolePart::gradient_dgrad]->format->name == "int8");
  CHECK_FALSE(typed(split)[RolePart::gradient_wgrad]);
  CHECK(canonical(split)["gradient"]["wgrad"].is_null());
  CHECK_THROWS_WITH(canonical(R"({"gradient": {"dgrad": null, "format": "int8"}})"),
                    Contains("gradient") && Contains("'format'"));
  CHECK_THROWS_WITH(canonical(R"({"weight": {"dgrad": {"format": "int8"}}})"), Contains("'dgrad'"));
}

TEST_CASE("roles: the optimizer's state may be split by moment", "[fast]") {
  const char* split = R"({"state": {"first": {"format": "int8"}, "second": {"format": "e5m2"}}})";
  const LayerRecipe layer = typed(split);
  CHECK(layer.given[RolePart::state_second]);
  for (const char* name : {"first", "velocity", "complement/first"})
    CHECK(layer[state_part(name)]->format->name == "int8");
  for (const char* name : {"second", "complement/second"})
    CHECK(layer[state_part(name)]->format->name == "float8_e5m2");
  CHECK(canonical(canonical(split).dump()) == canonical(split));
  const LayerRecipe half = typed(R"({"state": {"second": {"format": "int8"}}})");
  CHECK_FALSE(half[state_part("first")]);
  CHECK(half[state_part("second")]);
  const LayerRecipe whole = typed(R"({"state": {"format": "int8"}})");
  CHECK_FALSE(whole.given[RolePart::state_second]);
  CHECK(whole[state_part("second")]->format->name == "int8");
  CHECK_THROWS_WITH(canonical(R"({"state": {"first": null, "format": "int8"}})"),
                    Contains("state") && Contains("'format'"));
  CHECK_THROWS_WITH(canonical(R"({"state": {"dgrad": null}})"), Contains("'dgrad'"));
  CHECK_THROWS_WITH(canonical(R"({"gradient": {"first": null}})"), Contains("'first'"));
}

TEST_CASE("roles: patches replace, merge, and keep what they do not name", "[fast]") {
  const Json base = canonical(R"({"weight": {"format": "int8", "rounding": "rtz"},
                                  "gradient": {"format": "int8"}})");
  const auto patched = [&](const std::string& text) {
    const Json patch = parse_json(text, "p.json");
    const Json raw = patched_roles(base, JsonReader(patch, "p.json"));
    return canonical_roles(JsonReader(raw, "p.json"));
  };
  CHECK(patched(R"({"weight": {"format": "int4"}})")["weight"]["rounding"] == "rtz");
  CHECK(patched(R"({"weight": null})")["weight"].is_null());
  CHECK(patched(R"({"activation": {"format": "int4"}})")["weight"] == base["weight"]);
  CHECK(patched(R"({"key": {"format": "int4"}})")["key"]["format"] == "int4");
  CHECK_FALSE(patched(R"({"key": {"format": "int4"}})").contains("value"));
  CHECK(
      patched(R"({"gradient": {"dgrad": {"format": "int4"}, "wgrad": null}})")["gradient"]["dgrad"]
                                                                              ["format"] == "int4");
  CHECK_THROWS_WITH(patched(R"({"weight": "int4"})"),
                    Contains("weight: expected an object or null"));
  CHECK(canonical_role_patches(parse_json(R"({"weight": {"format": "e4m3fn"}, "vector": null,
                           "gradient": {"dgrad": {"format": "e5m2"}, "wgrad": null}})",
                                          "p")) ==
        parse_json(R"({"weight": {"format": "float8_e4m3fn"}, "vector": null,
                       "gradient": {"dgrad": {"format": "float8_e5m2"}, "wgrad": null}})",
                   "p"));
}

}  // namespace roles_test
