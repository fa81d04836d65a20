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
  }
  CHECK(space_of({.formats = {"int4"}, .blocks = {}, .rules = {"floor"}}, "activation").empty());
}

}  // namespace search_space_test
