// The backward pass: gradients of a value gather from all its readers, go through their edge once,
// then move on.
#include <utility>

#include "emu/net/backward_plan.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"

namespace numemu::net {
namespace {

// The float32 sum of the readers' gradients in node order; they came in the opposite order.
Tensor gather(std::vector<Tensor> parts) {
  Tensor sum = std::move(parts.back());
  for (std::size_t p = parts.size() - 1; p-- > 0;) {
    float* const total = sum.data.data();
    const float* const part = parts[p].data.data();
    for_each_element(sum.size(), [=](std::int64_t i) { total[i] = neutral(total[i] + part[i]); });
  }
  return sum;
}

// Kept values, each given back by the numerics at its first reading.
class Restored {
 public:
  Restored(const Graph& graph, Tape& tape, Numerics& numerics)
      : graph_(graph), tape_(tape), numerics_(numerics), tensors_(tape.values.size()) {}

  const Tensor* at(int value) {
    if (tensors_[value].empty()) {
      tensors_[value] =
          numerics_.restore(value == 0 ? "input" : std::string_view(graph_.nodes[value - 1].name),
                            std::move(tape_.values[value]));
      if (tensors_[value].shape != tape_.shapes[value]) {
        throw Error("restored tensor of value " + std::to_string(value) + " has shape " +
                    to_string(tensors_[value].shape) + ", saved was " +
                    to_string(tape_.shapes[value]));
      }
    }
    return &tensors_[value];
  }
  void release(int value) { tensors_[value] = {}; }

 private:
  const Graph& graph_;
  Tape& tape_;
  Numerics& numerics_;
  std::vector<Tensor> tensors_;
};

}  // namespace

std::vector<Tensor> backward(const Graph& graph, Tape tape, Tensor grad_output,
                             Numerics& numerics) {
  const FloatGuard guard;
  if (tape.shapes.size() != graph.nodes.size() + 1 || grad_output.shape != tape.shapes.back()) {
    throw Error("network " + graph.name + ": the gradient " + to_string(grad_output.shape) +
                " does not fit the output on the tape");
  }
  std::vector<Tensor> gradients;
  for (const Parameter* parameter : graph.parameters())
    gradients.emplace_back(parameter->value.shape);
  std::size_t first_parameter = gradients.size();

  const BackwardPlan plan = plan_backward(graph);
  Restored restored(graph, tape, numerics);
  std::vector<std::vector<Tensor>> parts(tape.shapes.size());
  parts.back().push_back(std::move(grad_output));
  for (int i = static_cast<int>(graph.nodes.size()) - 1; i >= 0; --i) {
    const Node& node = graph.nodes[i];
    const Op& op = *node.op;
    const std::size_t parameters = op.parameters().size();
    first_parameter -= parameters;
    if (!plan.gradient[i + 1]) continue;
    Tensor gradient = gather(std::exchange(parts[i + 1], {}));
    if (op.result() != ResultKind::view) numerics.edge({node.name, true}, gradient);

    std::vector<const Tensor*> inputs;
    std::vector<Tensor> grad_inputs(node.inputs.size());
    bool want_inputs = false;
    for (const int v : node.inputs) {
      inputs.push_back(op.needs_inputs() ? restored.at(v) : nullptr);
      want_inputs = want_inputs || plan.gradient[v];
    }
    for (std::size_t k = 0; want_inputs && k < node.inputs.size(); ++k) {
      grad_inputs[k] = Tensor(tape.shapes[node.inputs[k]]);
    }
    op.backward({node.name, numerics, Phase::training}, inputs,
                op.needs_output() ? restored.at(i + 1) : nullptr, gradient, grad_inputs,
                std::span(gradients).subspan(first_parameter, parameters), want_inputs);

    for (std::size_t k = node.inputs.size(); k-- > 0;) {
      const int v = node.inputs[k];
      if (plan.gradient[v]) parts[v].push_back(std::move(grad_inputs[k]));
      if (plan.last_reader[v] == i) restored.release(v);
    }
    if (plan.last_reader[i + 1] == i) restored.release(i + 1);
  }
  return gradients;
}

}  // namespace numemu::net
