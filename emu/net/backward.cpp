// Gradients of a value gather from all its readers, go through their edge once, then move on. A
// value's gradient is needed if a parameter or a wanted value lies before it, and an entering
// gradient behind it.
#include "emu/net/backward.hpp"

#include <fmt/format.h>

#include <utility>

#include "emu/net/graph.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/profile.hpp"
#include "emu/net/run_context.hpp"
#include "emu/net/tied.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {

BackwardPlan plan_backward(const Graph& graph) {
  const int output[] = {static_cast<int>(graph.value_count()) - 1};
  return plan_backward(graph, output, {});
}

BackwardPlan plan_backward(const Graph& graph, std::span<const int> ends,
                           std::span<const int> wanted) {
  const std::size_t nodes = graph.nodes.size(), values = graph.value_count();
  std::vector<bool> learns(values, false), reaches(values, false);
  BackwardPlan plan{.gradient = std::vector<bool>(values),
                    .node = std::vector<bool>(nodes, false),
                    .wanted = std::vector<bool>(values, false),
                    .kept = std::vector<Uses>(values),
                    .last_reader = std::vector<int>(values, -1)};
  for (const int v : wanted) plan.wanted[v] = learns[v] = true;
  for (std::size_t i = 0; i < nodes; ++i) {
    const int own = graph.value_of(i);
    for (const Parameter& parameter : std::as_const(*graph.nodes[i].op).parameters())
      plan.node[i] = plan.node[i] || parameter.trained || parameter.is_tied();
    for (const int v : graph.nodes[i].inputs) plan.node[i] = plan.node[i] || learns[v];
    learns[own] = learns[own] || plan.node[i];
  }
  for (const int v : ends) reaches[v] = true;
  for (std::size_t i = nodes; i-- > 0;) {
    const bool reached = reaches[graph.value_of(i)];
    for (const int v : graph.nodes[i].inputs) reaches[v] = reaches[v] || reached;
    plan.node[i] = plan.node[i] && reached;
  }
  for (std::size_t v = 0; v < values; ++v) plan.gradient[v] = learns[v] && reaches[v];
  const auto keep = [&](int value, std::optional<Use> use, std::size_t reader) {
    if (!use) return;
    plan.kept[value].set(static_cast<std::size_t>(*use));
    plan.last_reader[value] = static_cast<int>(reader);
  };
  for (std::size_t i = nodes; i-- > 0;) {
    if (!plan.node[i]) continue;
    const Node& node = graph.nodes[i];
    keep(graph.value_of(i), node.op->output_use(), i);
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      keep(node.inputs[k], node.op->input_use(k), i);
  }
  return plan;
}

int find_value(const Graph& graph, std::string_view name) {
  std::vector<std::string> names;
  for (int v = 0; v < static_cast<int>(graph.value_count()); ++v) {
    if (graph.value_name(v) == name) return v;
    names.emplace_back(graph.value_name(v));
  }
  throw Error(fmt::format("network {}: {}", graph.name, unknown_name("value", name, names)));
}

Gradients gradients(const Graph& graph, std::span<const Tensor> inputs, Numerics& numerics,
                    const Step& step, std::span<const std::string> want,
                    std::span<const Injection> inject, std::uint64_t seed) {
  const FloatGuard guard;
  std::vector<int> wanted, ends;
  for (const std::string& name : want) wanted.push_back(find_value(graph, name));
  for (const Injection& injection : inject) ends.push_back(find_value(graph, injection.value));

  std::vector<std::vector<Tensor>> parts(graph.value_count());
  const auto enter = [&](int value, const Tensor& tensor) {
    for (std::size_t i = 0; i < inject.size(); ++i) {
      if (ends[i] != value) continue;
      Tensor gradient = inject[i].gradient(tensor);
      if (gradient.shape != tensor.shape) {
        throw Error(fmt::format("network {}: the gradient injected at {} has shape {}, expected {}",
                                graph.name, inject[i].value, to_string(gradient.shape),
                                to_string(tensor.shape)));
      }
      parts[static_cast<std::size_t>(value)].push_back(std::move(gradient));
    }
  };
  const BackwardPlan plan = plan_backward(graph, ends, wanted);
  Tape tape = forward_training(graph, inputs, numerics, step, seed, plan, enter);
  Gradients result;
  result.output = std::move(tape.output);
  const std::vector<Shape> shapes = tape.shapes;
  std::vector<Tensor> values(graph.value_count());
  result.parameters = backward(graph, std::move(tape), std::move(parts), numerics, plan, &values);
  for (const int v : wanted) {
    const Tensor& gradient = values[static_cast<std::size_t>(v)];
    result.values.push_back(gradient.empty() ? Tensor(shapes[static_cast<std::size_t>(v)])
                                             : gradient);
  }
  return result;
}

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
    gradients.push_back(parameter->trained || parameter->is_tied() ? Tensor(parameter->value.shape)
                                                                   : Tensor());
  std::size_t first_parameter = gradients.size();

  Restored restored(graph, tape, numerics);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const Op& op = *node.op;
    const int own = graph.value_of(i);
    const std::size_t parameters = op.parameters().size();
    first_parameter -= parameters;
    if (!plan.gradient[own]) continue;
    RunScope::current().go_on();
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
                {inputs, restored.at(own, op.output_use()), gradient, grad_inputs,
                 std::span(gradients).subspan(first_parameter, parameters), want_inputs});

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
  join_tied(graph, gradients);
  return gradients;
}

}  // namespace numemu::net
