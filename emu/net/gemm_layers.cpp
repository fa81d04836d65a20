#include "emu/net/gemm_layers.hpp"

#include <utility>

#include "emu/net/forward.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/observing.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// Whether attention has such operators between its products and its softmax: the elements stay
/// apart.
bool passes(const Op& op) {
  const std::string_view kind = op.kind();
  return op.in_place() || op.result() == ResultKind::view || kind == "causal_mask" ||
         kind == "where" || kind == "multiply_add" || kind == "dropout";
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

/// Of every value, whether its samples do not follow each other: the batch is on a later axis, or
/// was until the axes were joined. None where the graph takes one sample alone.
std::vector<bool> across_samples(const Graph& graph) {
  const auto shapes_of = [&](std::int64_t batch) {
    std::vector<Shape> inputs;
    for (const GraphInput& input : graph.inputs) {
      inputs.push_back(input.shape);
      inputs.back().insert(inputs.back().begin(), batch);
    }
    return value_shapes(graph, inputs);
  };
  std::vector<Shape> two, three;
  try {
    two = shapes_of(2), three = shapes_of(3);
  } catch (const Error&) {  // a reshape to the sizes of one sample
    return std::vector<bool>(shapes_of(1).size());
  }
  // The axis of the batch; the rank where the value does not depend on it.
  const auto batch_axis = [&](int v) {
    std::size_t axis = 0;
    while (axis < two[v].size() && two[v][axis] == three[v][axis]) ++axis;
    return axis;
  };
  std::vector<bool> across(two.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const int v = graph.value_of(i);
    if (const std::size_t axis = batch_axis(v); axis != 0) {
      across[v] =
          axis < two[v].size() &&
          element_count({two[v].begin(), two[v].begin() + static_cast<std::ptrdiff_t>(axis)}) > 1;
      continue;
    }
    // Only a new shape joins the batch with the axes before it; by a transposition, a reduction or
    // a choice of what was before it the batch came to the front.
    const bool joins = node.op->kind() == "reshape" || node.op->kind() == "flatten";
    for (const int input : node.inputs)
      across[v] = across[v] || (across[input] && (joins || batch_axis(input) == 0));
  }
  return across;
}

}  // namespace

std::set<std::string> layers_across_samples(const Graph& graph) {
  const std::vector<bool> across = across_samples(graph);
  std::set<std::string> layers;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    bool any = across[graph.value_of(i)];
    for (const int input : node.inputs) any = any || across[input];
    for (const OpProduct& product : node.op->products()) {
      if (any) layers.insert(node.name + product.suffix);
    }
  }
  return layers;
}

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

double multiply_adds(const Product& p) {
  return static_cast<double>(p.d_stack.count() * p.m) * static_cast<double>(p.n * p.k);
}

double multiply_adds(const Graph& graph, const std::vector<Tensor>& batch) {
  double sum = 0;
  Observing numerics({.before = [&](const Step&, const Product& p) { sum += multiply_adds(p); }});
  forward(graph, batch, numerics);
  return sum;
}

}  // namespace numemu::net
