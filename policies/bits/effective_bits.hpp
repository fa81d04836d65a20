// Effective stored bits of a network under a recipe: of one pass, and of what training keeps from
// one step to the next.
#pragma once
#include "emu/net/gemm_layers.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/train/options.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/numerics/stored_tensor.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {

/// Bits per element of full tensors, with scales (32 bits each; those of block formats as stored),
/// zero points and tensor scales; elements that are not quantized count at 32. Tensors of a sample
/// are counted with a batch of 1; the static scale of an activation, one for all samples, with
/// nothing. Under a mask of N:M the kept share of the elements counts, and
/// for each kept element the bits of its place in the group; under one of single elements a bit for
/// every element beside the kept ones.
struct EffectiveBits {
  double weight = 32;      ///< over all trained parameters, biases too
  double activation = 32;  ///< over the activations that products read
  double gradient = 32;    ///< over the output gradients that products read, dgrad and wgrad each
  double vector = 32;      ///< over the results of operators that are not products
  double output = 32;      ///< over the results of products
  double saved = 32;       ///< over the results of all operators, as kept for the use `linear`
  double state = 32;       ///< over all trained parameters, for one tensor of optimizer state
  double exchange = 32;    ///< over all trained parameters
  double product_weight = 32;  ///< over the trained parameters that products read as weights
};

EffectiveBits effective_bits(const BoundRecipe&, const FloatReference&);

/// The depth of a layer's products that read an activation of that shape.
std::int64_t product_depth(const net::GemmLayer&, const net::Shape& activation);

/// Bytes that training stores of each trained parameter from one step to the next: means over all,
/// scales included.
struct ParameterBytes {
  double master = 4;  ///< the parameter itself, as update.master stores it
  double state = 0;   ///< every tensor of the optimizer's state, under the role `state`
};

/// What update rules keep (residuals, older versions) is not counted. Throws Error for an optimizer
/// that nobody has.
ParameterBytes parameter_bytes(const BoundRecipe&, const net::TrainOptions&);

/// The recipe stores masters or states in fewer bits than float32 has.
bool stores_few_bits(const BoundRecipe&);

}  // namespace numemu::policies
