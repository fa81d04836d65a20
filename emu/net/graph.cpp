// The graph: adding operators in topological order, its parameters and their first values.
#include "emu/net/graph.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/math.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/random.hpp"

namespace numemu::net {

std::string_view Graph::value_name(int value) const {
  const std::size_t number = static_cast<std::size_t>(value);
  if (number < inputs.size()) return inputs[number].name;
  return nodes.at(number - inputs.size()).name;
}

int Graph::add(std::string node_name, std::unique_ptr<Op> op, std::vector<int> reads) {
  const int last = static_cast<int>(value_count()) - 1;
  for (int& v : reads) {
    if (v == kLast) v = last;
    if (v < 0 || v > last) {
      throw Error("network " + name + ": node " + node_name + " reads value " + std::to_string(v) +
                  " of " + std::to_string(last + 1));
    }
  }
  for (const Node& node : nodes) {
    if (node.name == node_name)
      throw Error("network " + name + ": two nodes are named " + node_name);
  }
  for (Parameter& parameter : op->parameters()) parameter.name = node_name + "." + parameter.name;
  nodes.push_back({std::move(node_name), std::move(op), std::move(reads)});
  return last + 1;
}

std::vector<Parameter*> Graph::parameters() {
  std::vector<Parameter*> all;
  for (Node& node : nodes) {
    for (Parameter& parameter : node.op->parameters()) all.push_back(&parameter);
  }
  return all;
}

std::vector<const Parameter*> Graph::parameters() const {
  std::vector<const Parameter*> all;
  for (const Node& node : nodes) {
    for (const Parameter& parameter : std::as_const(*node.op).parameters())
      all.push_back(&parameter);
  }
  return all;
}

std::int64_t Graph::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter* parameter : parameters()) {
    if (parameter->trained) count += parameter->value.size();
  }
  return count;
}

void apply(const BufferUpdate& update, Tensor& running) {
  for (std::size_t c = 0; c < running.data.size(); ++c) {
    double value = running.data[c];
    for (const std::vector<double>& statistic : update.statistics)
      value = (1 - update.momentum) * value + update.momentum * statistic[c];
    running.data[c] = neutral(static_cast<float>(value));
  }
}

void apply_buffers(Graph& graph, const std::vector<NodeBuffer>& buffers) {
  for (const NodeBuffer& buffer : buffers) {
    apply(buffer.update,
          graph.nodes.at(buffer.node).op->parameters()[buffer.update.parameter].value);
  }
}

namespace {

// Deviate i by Box and Muller (1958) from uniforms 2i and 2i + 1; the half step keeps the logarithm
// finite.
double normal(const RandomSource& source, std::uint64_t i) {
  const double u = (source.bits(2 * i, 32) + 0.5) * 0x1p-32;
  const double radius = std::sqrt(-2.0 * double{log(static_cast<float>(u))});
  return radius * cos_pi(2 * source.uniform(2 * i + 1));
}

}  // namespace

void initialize(Graph& graph, std::uint64_t seed) {
  const FloatGuard guard;
  const Parameter* classifier = nullptr;
  for (const Node& node : graph.nodes) {
    for (const Parameter& parameter : std::as_const(*node.op).parameters()) {
      // A fixed classifier leaves the weights of the others alone; a constant is none.
      if (parameter.fan_in > 0 || (parameter.fan_in < 0 && !node.op->products().empty()))
        classifier = &parameter;
    }
  }
  for (Parameter* parameter : graph.parameters()) {
    if (parameter->fan_in < 0) continue;  // a constant of the graph
    Elements& data = parameter->value.data;
    if (parameter->fan_in == 0) {
      data.assign(data.size(), parameter->initial);
      continue;
    }
    // He et al. (2015): variance 2 / fan_in keeps the scale of activations through layers of ReLU.
    // Max-pooling makes them grow all the same, and logits with it; small last weights (variance
    // 1 / fan_in^2 as in Yang et al. 2022, Tensor Programs V) start the loss at ln(classes).
    const double fan_in = static_cast<double>(parameter->fan_in);
    const double deviation = parameter == classifier ? 1 / fan_in : std::sqrt(2 / fan_in);
    const RandomSource source{seed, Stream::init, tensor_word(parameter->name), 0};
    constexpr std::int64_t kWork = 64;  // a deviate costs as much as that many additions
    for_each_row(parameter->value.size(), kWork, [&](std::int64_t i) {
      data[i] = static_cast<float>(deviation * normal(source, static_cast<std::uint64_t>(i)));
    });
  }
}

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
