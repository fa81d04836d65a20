// Float32 weights whose memory an inference under a recipe no longer needs.
#pragma once
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::policies {

/// Frees the weights of a node that has run under the frozen numerics, as far as these hold what
/// they multiply in later passes (RoleNumerics::holds_weight()); their shapes stay. Nothing else
/// may read these weights any more: no pass in float32, no prediction, no digest.
void release_weights(net::Node&, const RecipeNumerics&);

}  // namespace numemu::policies
