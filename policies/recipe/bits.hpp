// Effective stored bits of a network under a recipe.
#pragma once
#include "emu/net/graph.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Bits per element of full tensors, with scales (32 bits each; those of block formats as stored),
/// zero points and tensor scales; elements that are not quantized count at 32. Tensors of a sample
/// are counted with a batch of 1. Under a mask of N:M the kept share of the elements counts, and
/// for each kept element the bits of its place in the group; under one of single elements a bit for
/// every element beside the kept ones.
struct EffectiveBits {
  double weight = 32;      ///< over all trained parameters, biases too
  double activation = 32;  ///< over the activations that products read
  double gradient = 32;    ///< over the output gradients that products read, dgrad and wgrad each
  double vector = 32;      ///< over the results of operators that are no products
  double output = 32;      ///< over the results of products
  double saved = 32;       ///< over the results of all operators: what backward may keep
  double state = 32;       ///< over all trained parameters, for one tensor of optimizer state
  double exchange = 32;    ///< over all trained parameters
};

EffectiveBits effective_bits(const Recipe&, const net::Graph&, const FloatReference&);

/// Stored bits of one tensor under a role, all of its elements; 32 an element without one.
double stored_bits(const std::optional<RolePolicy>&, const net::Shape&);

}  // namespace numemu::policies
