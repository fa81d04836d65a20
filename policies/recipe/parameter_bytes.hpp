// Bytes that training stores of each trained parameter from one step to the next.
#pragma once
#include "emu/net/graph.hpp"
#include "emu/net/train/options.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Means over all trained parameters, scales included.
struct ParameterBytes {
  double master = 4;  ///< the parameter itself, as update.master stores it
  double state = 0;   ///< every tensor of the optimizer's state, under the role `state`
};

/// What update rules keep (residuals, older versions) is not counted. Throws Error for an optimizer
/// that nobody has.
ParameterBytes parameter_bytes(const Recipe&, const net::Graph&, const net::TrainOptions&);

/// The recipe stores masters or states in fewer bits than float32 has.
bool stores_few_bits(const Recipe&, const net::Graph&);

}  // namespace numemu::policies
