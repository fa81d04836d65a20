// The layers of a graph that multiply, and their weights.
#include "emu/net/gemm_layers.hpp"

#include "formats/error.hpp"

namespace numemu::net {

const Tensor* weight_of(const Node& node) {
  for (const Parameter& parameter : static_cast<const Op&>(*node.op).parameters()) {
    if (parameter.name.ends_with(".weight")) return &parameter.value;
  }
  return nullptr;
}

const Tensor& weight_of(const Graph& graph, std::string_view layer) {
  for (const Node& node : graph.nodes) {
    const Tensor* weight = node.name == layer ? weight_of(node) : nullptr;
    if (weight != nullptr) return *weight;
  }
  throw Error("no layer '" + std::string(layer) + "' multiplies");
}

std::vector<std::string> gemm_layers(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (weight_of(node) != nullptr) names.push_back(node.name);
  }
  return names;
}

}  // namespace numemu::net
