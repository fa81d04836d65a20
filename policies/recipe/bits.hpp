// Effective stored bits of a network under a recipe.
#pragma once
#include "emu/net/graph.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Bits per element, scales included (32 per tensor or channel), unquantized elements counted
/// at 32. `weight` is the mean over all parameters, biases too; `activation` over the activations
/// that products read, per image.
struct EffectiveBits {
  double weight = 32, activation = 32;
};

EffectiveBits effective_bits(const Recipe&, const net::Graph&, const FloatReference&);

}  // namespace numemu::policies
