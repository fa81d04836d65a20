#include "emu/net/gemm_layers.hpp"

#include <utility>

#include "formats/error.hpp"

namespace numemu::net {

std::vector<GemmLayer> gemm_layers(const Graph& graph) {
  std::vector<GemmLayer> layers;
  for (const Node& node : graph.nodes) {
    const std::span<const Parameter> parameters = std::as_const(*node.op).parameters();
    for (const OpProduct& product : node.op->products()) {
      layers.push_back({node.name + product.suffix, &node,
                        product.weight < 0 ? nullptr : &parameters[product.weight].value});
    }
  }
  return layers;
}

std::vector<std::string> gemm_layer_names(const Graph& graph) {
  std::vector<std::string> names;
  for (GemmLayer& layer : gemm_layers(graph)) names.push_back(std::move(layer.name));
  return names;
}

const Tensor& weight_of(const Graph& graph, std::string_view layer) {
  for (const GemmLayer& found : gemm_layers(graph)) {
    if (found.name == layer && found.weight != nullptr) return *found.weight;
  }
  throw Error("no layer '" + std::string(layer) + "' has a weight");
}

}  // namespace numemu::net
