// Recipes of a few keys, as they are understood or refused.
#pragma once
#include <string>

#include "formats/error.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/files.hpp"

namespace numemu::policies::test {

/// The canonical form of a recipe with these keys.
inline Json parsed(const std::string& keys) {
  return Recipe::parse_text(R"j({"numemu_recipe": 1, )j" + keys + "}", "r.json").json();
}

/// Why it is none; "" where it is one.
inline std::string refused(const std::string& keys) {
  return numemu::test::message_of([&] { parsed(keys); });
}

}  // namespace numemu::policies::test
