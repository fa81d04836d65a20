// The backward pass: gradients of a value gather from all its readers, go through their edge once,
// then move on.
#include <utility>

#include "emu/net/backward_plan.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/profile.hpp"
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

// Kept values, each given back by the numerics at its first reading for a use.
class Restored {
 public:
  Restored(const Graph& graph, Tape& tape, Numerics& numerics)
      : graph_(graph), tape_(tape), numerics_(numerics), tensors_(tape.values.size()) {}

  // Null where there is no use.
  const Tensor* at(int value, std::optional<Use> use) {
    if (!use) return nullptr;
    const auto u = static_cast<std::size_t>(*use);
    SharedTensor& tensor = tensors_[value][u];
    if (tensor == nullptr) {
      tensor = numerics_.restore(tape_.step, {graph_.value_name(value), *use},
                                 std::move(tape_.values[value][u]));
      if (tensor->shape != tape_.shapes[value]) {
        throw Error("restored tensor of value " + std::to_string(value) + " has shape " +
                    to_string(tensor->shape) + ", saved was " + to_string(tape_.shapes[value]));
      }
    }
    return tensor.get();
  }
  void release(int value) { tensors_[value] = {}; }

 private:
  const Graph& graph_;
  Tape& tape_;
  Numerics& numerics_;
  std::vector<std::array<SharedTensor, kUses>> tensors_;
};

}  // namespace

std::vector<Tensor> backward(const Graph& graph, Tape tape, Tensor grad_output,
                             Numerics& numerics) {
  if (tape.shapes.size() != graph.value_count() || grad_output.shape != tape.shapes.back()) {
    throw Error("network " + graph.name + ": the gradient " + to_string(grad_output.shape) +
                " does not fit the output on the tape");
  }
  std::vector<std::vector<Tensor>> parts(tape.shapes.size());
  parts.back().push_back(std::move(grad_output));
  return backward(graph, std::move(tape), std::move(parts), numerics, plan_backward(graph));
}

std::vector<Tensor> backward(const Graph& graph, Tape tape, std::vector<std::vector<Tensor>> parts,
                             Numerics& numerics, const BackwardPlan& plan,
                             std::vector<Tensor>* values) {
  const FloatGuard guard;
  std::vector<Tensor> gradients;
  for (const Parameter* parameter : graph.parameters())
    gradients.push_back(parameter->trained ? Tensor(parameter->value.shape) : Tensor());
  std::size_t first_parameter = gradients.size();

  Restored restored(graph, tape, numerics);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const Op& op = *node.op;
    const int own = graph.value_of(i);
    const std::size_t parameters = op.parameters().size();
    first_parameter -= parameters;
    if (!plan.gradient[own]) continue;
    const Section section(SectionKind::backward, node.name, op.kind());
    Tensor gradient = gather(std::exchange(parts[own], {}));
    if (plan.wanted[own] && values != nullptr) values->at(own) = gradient;
    if (!plan.node[i]) continue;
    if (op.result() != ResultKind::view) numerics.edge(tape.step, {node.name, true}, gradient);

    std::vector<const Tensor*> inputs;
    std::vector<Tensor> grad_inputs(node.inputs.size());
    bool want_inputs = false;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      inputs.push_back(restored.at(node.inputs[k], op.input_use(k)));
      want_inputs = want_inputs || plan.gradient[node.inputs[k]];
    }
    for (std::size_t k = 0; want_inputs && k < node.inputs.size(); ++k) {
      grad_inputs[k] = Tensor(tape.shapes[node.inputs[k]]);
    }
    SharedTensor context;
    if (element_count(tape.context_shapes[i]) > 0 && !tape.context_shapes[i].empty())
      context =
          numerics.restore(tape.step, {node.name, Use::statistic}, std::move(tape.contexts[i]));
    op.backward({.layer = node.name,
                 .numerics = numerics,
                 .phase = Phase::training,
                 .seed = tape.seed,
                 .step = tape.step,
                 .kept = context.get()},
                inputs, restored.at(own, op.output_use()), gradient, grad_inputs,
                std::span(gradients).subspan(first_parameter, parameters), want_inputs);

    for (std::size_t k = node.inputs.size(); k-- > 0;) {
      const int v = node.inputs[k];
      if (plan.gradient[v]) parts[v].push_back(std::move(grad_inputs[k]));
      if (plan.last_reader[v] == static_cast<int>(i)) restored.release(v);
    }
    if (plan.last_reader[own] == static_cast<int>(i)) restored.release(own);
  }
  for (std::size_t v = 0; values != nullptr && v < graph.inputs.size(); ++v) {
    if (plan.wanted[v] && !parts[v].empty()) values->at(v) = gather(std::move(parts[v]));
  }
  return gradients;
}

}  // namespace numemu::net
