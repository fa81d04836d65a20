// The forward passes: every node's result goes through the moments, values die after their last
// reader.
#include <utility>

#include "emu/net/backward_plan.hpp"
#include "emu/net/graph.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"

namespace numemu::net {
namespace {

// The number of each value's last reader; -1 for one that nobody reads.
std::vector<int> last_readers(const Graph& graph) {
  std::vector<int> last(graph.nodes.size() + 1, -1);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const int v : graph.nodes[i].inputs) last[v] = static_cast<int>(i);
  }
  return last;
}

// Runs all nodes and hands each value to `done` after its last reader; the last value is returned.
Tensor run(const Graph& graph, const Tensor& x, Numerics& numerics, Phase phase,
           const Observer* observer, std::vector<Shape>* shapes,
           const std::function<void(int value, Tensor tensor)>& done) {
  const FloatGuard guard;
  Shape expected = graph.input_shape;
  expected.insert(expected.begin(), x.shape.empty() ? 0 : x.shape[0]);
  if (x.shape != expected || x.shape[0] < 1) {
    throw Error("network " + graph.name + ": expected an input of shape [batch >= 1, then " +
                to_string(graph.input_shape) + "], got " + to_string(x.shape));
  }
  const int count = static_cast<int>(graph.nodes.size());
  const std::vector<int> last = last_readers(graph);
  std::vector<Tensor> values(graph.nodes.size() + 1);
  values[0] = x;
  if (shapes != nullptr) shapes->push_back(x.shape);
  for (int i = 0; i < count; ++i) {
    const Node& node = graph.nodes[i];
    std::vector<const Tensor*> inputs;
    std::vector<Shape> input_shapes;
    for (const int v : node.inputs) {
      inputs.push_back(&values[v]);
      input_shapes.push_back(values[v].shape);
    }
    Tensor output(node.op->output_shape(input_shapes));
    node.op->forward({node.name, numerics, phase}, inputs, output);
    if (node.op->result() == ResultKind::vector)
      numerics.vector_result(node.name, node.op->kind(), output);
    if (observer != nullptr && *observer) (*observer)(node, output);
    if (node.op->result() != ResultKind::view) numerics.edge({node.name, false}, output);
    if (shapes != nullptr) shapes->push_back(output.shape);
    values[i + 1] = std::move(output);
    for (const int v : node.inputs) {
      if (last[v] == i && !values[v].empty()) done(v, std::exchange(values[v], {}));
    }
  }
  return std::move(values.back());
}

}  // namespace

Tensor forward(const Graph& graph, const Tensor& x, Numerics& numerics, const Observer* observer) {
  return run(graph, x, numerics, Phase::inference, observer, nullptr, [](int, Tensor) {});
}

Tape forward_training(const Graph& graph, const Tensor& x, Numerics& numerics) {
  Tape tape;
  const std::size_t count = graph.nodes.size() + 1;
  tape.values.resize(count);
  tape.kept = plan_backward(graph).kept;
  const auto keep = [&](int value, Tensor tensor) {
    if (!tape.kept[value]) return;
    tape.values[value] =
        numerics.save(value == 0 ? "input" : graph.nodes[value - 1].name, std::move(tensor));
  };
  tape.output = run(graph, x, numerics, Phase::training, nullptr, &tape.shapes, keep);
  if (tape.kept.back()) keep(static_cast<int>(count) - 1, tape.output);
  return tape;
}

}  // namespace numemu::net
