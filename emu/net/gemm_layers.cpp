#include "emu/net/gemm_layers.hpp"

#include <utility>

#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// Whether attention has such operators between its products and its softmax: the elements stay
/// apart.
bool passes(const Op& op) {
  const std::string_view kind = op.kind();
  return op.in_place() || op.result() == ResultKind::view || kind == "causal_mask" ||
         kind == "where" || kind == "dropout";
}

/// Of every value, whether a softmax reads it, and whether it comes from one, through operators
/// that pass.
struct Softmaxes {
  std::vector<bool> before, after;

  explicit Softmaxes(const Graph& graph) : before(graph.value_count()), after(graph.value_count()) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      bool from = node.op->kind() == "softmax";
      for (const int input : node.inputs) from = from || (passes(*node.op) && after[input]);
      after[graph.value_of(i)] = from;
    }
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
      const Node& node = graph.nodes[i];
      if (node.op->kind() != "softmax" && !(passes(*node.op) && before[graph.value_of(i)]))
        continue;
      for (const int input : node.inputs) before[input] = true;
    }
  }
};

}  // namespace

std::vector<GemmLayer> gemm_layers(const Graph& graph) {
  const Softmaxes softmax(graph);
  std::vector<GemmLayer> layers;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const std::span<const Parameter> parameters = std::as_const(*node.op).parameters();
    for (const OpProduct& product : node.op->products()) {
      GemmLayer layer{.name = node.name + product.suffix, .node = &node};
      if (product.weight >= 0) {
        layer.weight = &parameters[product.weight].value;
      } else {
        layer.right = softmax.before[graph.value_of(i)]  ? Role::key
                      : softmax.after[node.inputs.at(0)] ? Role::value
                                                         : Role::activation;
      }
      layers.push_back(std::move(layer));
    }
  }
  return layers;
}

std::vector<std::string> gemm_layer_names(const Graph& graph) {
  std::vector<std::string> names;
  for (GemmLayer& layer : gemm_layers(graph)) names.push_back(std::move(layer.name));
  return names;
}

const Tensor* table_of(const Node& node) {
  const std::string_view kind = node.op->kind();
  if (kind != "embedding" && kind != "position_embedding") return nullptr;
  return &std::as_const(*node.op).parameters()[0].value;
}

const Tensor& weight_of(const Graph& graph, std::string_view layer) {
  for (const GemmLayer& found : gemm_layers(graph)) {
    if (found.name == layer && found.weight != nullptr) return *found.weight;
  }
  throw Error("no layer '" + std::string(layer) + "' has a weight");
}

}  // namespace numemu::net
