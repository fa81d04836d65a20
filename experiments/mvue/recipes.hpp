// Recipes that prune the gradients of a network, and its weights.
#pragma once
#include <string>

#include "formats/storage/json.hpp"

namespace numemu::experiments::mvue {

/// What is pruned, by mask texts; an empty one prunes nothing.
struct Pruning {
  std::string dgrad, wgrad;  ///< the gradient as that product reads it: "mvue(1:2)"
  std::string weight;        ///< "transposable(2:4,refresh=40)"
};

/// A float32 recipe with these masks everywhere but in the layer `output`. Gradients are pruned
/// along batch and space; tails as if zeros followed.
Json recipe_of(const Pruning&, const std::string& output);

}  // namespace numemu::experiments::mvue
