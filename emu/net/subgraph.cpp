// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/subgraph.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/memory_plan.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// Another graph's operator.
class Shared final : public Op {
 public:
  explicit Shared(Op& op) : Op(op.traits()), op_(op) {}
  std::span<Parameter> parameters() override { return op_.parameters(); }
  Shape output_shape(Shapes inputs) const override { return op_.output_shape(inputs); }
  OperatorMemory memory(Shapes inputs) const override { return op_.memory(inputs); }
  void forward(const OpCall& call, OpInputs inputs, Tensor& output) const override {
    op_.forward(call, inputs, output);
  }
  void backward(const OpCall& call, const OpBackward& back) const override {
    op_.backward(call, back);
  }

 private:
  Op& op_;
};

}  // namespace

Graph subgraph(Graph& graph, std::span<const std::string> from, const std::string& to) {
  const auto inputs = static_cast<int>(graph.inputs.size());
  const int last = find_value(graph, to);
  Graph part;
  part.name = fmt::format("{} to {}", graph.name, to);

  std::vector<Shape> shapes;
  for (const GraphInput& input : graph.inputs) {
    shapes.push_back(input.shape);
    shapes.back().insert(shapes.back().begin(), 1);
  }
  shapes = value_shapes(graph, shapes);
  constexpr int kUnnumbered = -1;
  std::vector<int> number(graph.value_count(), kUnnumbered);  // in the part
  for (const std::string& name : from) {
    const int v = find_value(graph, name);
    if (number[v] != kUnnumbered)
      throw Error(fmt::format("{}: {} is given twice", part.name, name));
    number[v] = static_cast<int>(part.inputs.size());
    part.inputs.push_back(
        {name, {shapes[v].begin() + (shapes[v].empty() ? 0 : 1), shapes[v].end()}});
  }

  std::vector<bool> needed(graph.value_count(), false);
  needed[last] = true;
  for (int v = last; v >= 0; --v) {
    if (!needed[v] || number[v] != kUnnumbered) continue;
    if (v < inputs) {
      throw Error(
          fmt::format("{}: it also depends on the input {}, expected one of the values that "
                      "the part starts from",
                      part.name, graph.value_name(v)));
    }
    for (const int read : graph.nodes[v - inputs].inputs) needed[read] = true;
  }
  for (const GraphInput& input : part.inputs) {
    const int v = find_value(graph, input.name);
    if (v == last || !needed[v])
      throw Error(fmt::format("{}: expected a value that depends on {}", part.name, input.name));
  }
  for (int v = inputs; v <= last; ++v) {
    if (!needed[v] || number[v] != kUnnumbered) continue;
    const Node& node = graph.nodes[v - inputs];
    std::vector<int> reads;
    for (const int read : node.inputs) reads.push_back(number[read]);
    number[v] = static_cast<int>(part.value_count());
    // Not add(): the parameters have their names.
    part.nodes.push_back({node.name, std::make_unique<Shared>(*node.op), std::move(reads)});
  }
  return part;
}

std::vector<Tensor> PartFromInputs::read(std::vector<Tensor> batch) const {
  std::vector<Tensor> tensors;
  for (const std::size_t input : inputs) tensors.push_back(std::move(batch.at(input)));
  return tensors;
}

PartFromInputs part_from_inputs(Graph& graph, const std::string& to) {
  const std::size_t inputs = graph.inputs.size();
  std::vector<bool> needed(graph.value_count());
  needed[find_value(graph, to)] = true;
  for (std::size_t v = graph.value_count(); v-- > inputs;) {
    if (!needed[v]) continue;
    for (const int read : graph.nodes[v - inputs].inputs) needed[read] = true;
  }
  PartFromInputs part;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < inputs; ++i) {
    if (!needed[i]) continue;
    part.inputs.push_back(i);
    names.push_back(graph.inputs[i].name);
  }
  part.graph = subgraph(graph, names, to);
  return part;
}

}  // namespace numemu::net
