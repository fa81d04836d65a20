// Networks with two gated layers, and the precisions that their gates choose from.
#pragma once
#include <vector>

#include "emu/net/graph.hpp"
#include "experiments/fractrain/gated_dense.hpp"
#include "experiments/fractrain/laws.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments::fractrain {

/// The published choices with weights of 4 bits, but for the one with gradients of 12 bits.
std::vector<Precision> gate_choices();

/// flatten, fc1, block1, block2, fc2, hidden layers of 128 units, ReLU between them. The gate of a
/// block reads what the block reads: gateI.in to 16 units, ReLU, gateI.out to a logit per choice.
struct GatedNet {
  net::Graph graph;
  std::vector<GatedDense*> blocks;  ///< in the graph
};
GatedNet gated_net(const net::Shape& image, std::int64_t classes,
                   const std::vector<Precision>& choices, double beta);

/// The blocks at their choices, all else at `rest`.
Json gated_recipe(const std::vector<Precision>& choices, const Precision& rest);

}  // namespace numemu::experiments::fractrain
