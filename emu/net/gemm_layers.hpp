// The layers of a graph that multiply, and their weights.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::net {

/// The trained matrix of a node (its parameter named "*.weight"), null for a node without one.
const Tensor* weight_of(const Node&);
/// The weight of the layer of that name; throws Error when no such layer multiplies.
const Tensor& weight_of(const Graph&, std::string_view layer);
/// Names of the layers with a weight, in node order.
std::vector<std::string> gemm_layers(const Graph&);

}  // namespace numemu::net
