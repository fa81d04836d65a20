// The keys of a recipe.
#pragma once
#include <string>
#include <vector>

namespace numemu::policies {

/// The top-level ones, in no order.
const std::vector<std::string>& recipe_keys();

}  // namespace numemu::policies
