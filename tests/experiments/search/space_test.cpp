// The space of a search: formats without twins, what recipes refuse left out, scalings in order.
#include "experiments/search/space.hpp"

#include <algorithm>
#include <set>

#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/catch.hpp"

namespace search_space_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

std::set<std::string> names_of(const std::vector<const Format*>& formats) {
  std::set<std::string> out;
  for (const Format* format : formats) out.insert(format->name);
  return out;
}

}  // namespace

TEST_CASE("elements: all of so many bits, none twice", "[fast]") {
  const std::set<std::string> four = names_of(space_elements({.most_bits = 4}));
  for (const char* name : {"int2", "int3", "int4", "float4_e2m1fn", "e3m0+finite", "e2m0+finite",
                           "nf4", "af4", "posit(4,2)"})
    CHECK(four.contains(name));
  // Sign and magnitude with one exponent bit are the symmetric integers.
  CHECK_FALSE(four.contains("e1m2+finite"));
  for (const Format* format : space_elements({.most_bits = 8})) {
    CHECK(format->bits <= 8);
    CHECK(format->is_signed);
  }
  CHECK(names_of(space_elements({.formats = {"int4", "int4", "e2m1"}})) ==
        std::set<std::string>{"int4", "float4_e2m1fn"});
  CHECK_THROWS_WITH(space_elements({.formats = {"uint4"}}), Catch::Contains("uint4"));
  CHECK_THROWS_WITH(space_elements({.formats = {"float16"}}), Catch::Contains("8 bits"));
  CHECK_THROWS_WITH(space_elements({.formats = {"int44"}}), Catch::Contains("int44"));
}

TEST_CASE("options are roles that recipes take, ordered by scaling", "[fast]") {
  for (const char* role : {"weight", "activation"}) {
    const std::vector<SearchOption> options = space_of({.most_bits = 4, .blocks = {16}}, role);
    std::set<std::string> names, roles;
    for (std::size_t i = 0; i < options.size(); ++i) {
      names.insert(options[i].name);
      roles.insert(options[i].role.dump());
      if (i > 0) CHECK(options[i - 1].scaling <= options[i].scaling);
      CHECK_NOTHROW(policies::Recipe::parse(
          {{"numemu_recipe", 1}, {"roles", {{role, options[i].role}}}}, "search"));
    }
    CHECK(names.size() == options.size());
    CHECK(roles.size() == options.size());
    const auto has = [&](const std::string& name) { return names.contains(name); };
    CHECK(has("int4, e8m0 per 16, floor"));
    CHECK(has("float4_e2m1fn, float8_e4m3fn per 16, absmax"));
    CHECK(has("float4_e2m1fn, float8_e4m3fn per 16 and float32 per tensor, absmax"));
    CHECK(has("int4, one float32 per tensor, absmax"));
    CHECK(has("int4, one float32 per channel, mse") == (std::string(role) == "weight"));
    CHECK_FALSE(has("int4, e8m0 per 16, absmax"));
    // Rules that a plan need not name.
    const bool weight = std::string(role) == "weight";
    CHECK(has("int4, e8m0 per 16, mse") == weight);
    CHECK(has("int3, float8_e4m3fn per 16, mse") == weight);
    CHECK(has("int3, float8_e4m3fn per 16, four-over-six") == weight);
    CHECK(has("int3, float8_e4m3fn per 16 and float32 per tensor, four-over-six"));
    CHECK_FALSE(has("int4, one float32 per tensor, four-over-six"));
    CHECK_FALSE(has("int4, e8m0 per 16, four-over-six"));
    for (const SearchOption& option : options)
      CHECK(option.searched == (option.rule == "mse" && option.policy.block != nullptr));
  }
  CHECK(space_of({.formats = {"int4"}, .blocks = {}, .rules = {"floor"}}, "activation").empty());
}

TEST_CASE("the rules that a search names, and forms of options that share all else", "[fast]") {
  const SpacePlan plan{.formats = {"int4", "e2m1"}, .blocks = {16}};
  CHECK(
      rules_text(space_of(plan, "weight")) ==
      "absmax, pow2(absmax,up), floor, ceil, even, nearest, four-over-six, mse (in blocks for the "
      "best under the others)");
  CHECK(rules_text(space_of(plan, "activation")) ==
        "absmax, pow2(absmax,up), floor, ceil, even, nearest, four-over-six");
  SpacePlan given = plan;
  given.rules = {"absmax", "ceil"};
  given.more_rules = false;
  const std::vector<SearchOption> options = space_of(given, "weight");
  CHECK(rules_text(options) == "absmax, ceil, mse without blocks");
  CHECK(std::ranges::none_of(options, &SearchOption::searched));
  given.rules = {"absmax", "mse"};  // asked for: in every block
  CHECK(rules_text(space_of(given, "weight")) == "absmax, mse");
  CHECK(std::ranges::none_of(space_of(given, "weight"), &SearchOption::searched));
  for (const SearchOption& a : options)
    for (const SearchOption& b : options)
      if (a.form == b.form) {
        CHECK(a.policy.format == b.policy.format);
        CHECK(a.policy.block == b.policy.block);
        CHECK((a.rule == b.rule) == (a.name == b.name));
      }
}

}  // namespace search_space_test
