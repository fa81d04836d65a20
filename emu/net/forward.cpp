// The forward passes: every node's result goes through the hooks, values die after their last
// reader.
#include "emu/net/forward.hpp"

#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/profile.hpp"
#include "emu/net/run_context.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"

namespace numemu::net {

namespace {

void require_inputs(const Graph& graph, std::span<const Tensor> inputs) {
  if (inputs.size() != graph.inputs.size()) {
    throw Error("network " + graph.name + ": expected " + std::to_string(graph.inputs.size()) +
                " inputs, got " + std::to_string(inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape;
    Shape expected = graph.inputs[i].shape;
    expected.insert(expected.begin(), shape.empty() ? 0 : shape[0]);
    if (shape == expected && shape[0] >= 1 && shape[0] == inputs[0].shape[0]) continue;
    throw Error("network " + graph.name + ": expected for " + graph.inputs[i].name +
                " an input of shape [batch >= 1, then " + to_string(graph.inputs[i].shape) +
                "], got " + to_string(shape));
  }
}

// A pass over all nodes. Values go to `done` after their last reader; `tape`, in training,
// takes shapes, contexts and buffers.
struct Pass {
  const Graph& graph;
  Numerics& numerics;
  const Step& step;
  const Observer* observer = nullptr;
  Tape* tape = nullptr;
  std::function<void(int value, Tensor tensor)> done = nullptr;
  std::function<void(int value, const Tensor&)> made = nullptr;

  Tensor run(std::span<const Tensor> inputs) const;
  void run_node(std::size_t i, std::span<const Tensor* const> inputs, Tensor& output) const;
};

void Pass::run_node(std::size_t i, std::span<const Tensor* const> inputs, Tensor& output) const {
  const Node& node = graph.nodes[i];
  if (tape == nullptr)
    return node.op->forward({.layer = node.name, .numerics = numerics, .step = step}, inputs,
                            output);
  Tensor context;
  std::vector<BufferUpdate> buffers;
  node.op->forward({node.name, numerics, Phase::training, tape->seed, step, &context, &buffers},
                   inputs, output);
  tape->context_shapes[i] = context.shape;
  if (!context.empty()) {
    tape->contexts[i] = numerics.save(step, {node.name, Use::statistic},
                                      std::make_shared<const Tensor>(std::move(context)));
  }
  for (BufferUpdate& update : buffers) tape->buffers.push_back({i, std::move(update)});
}

Tensor Pass::run(std::span<const Tensor> inputs) const {
  const FloatGuard guard;
  require_inputs(graph, inputs);
  require_memory(graph, inputs, tape == nullptr ? Keeps::nothing : Keeps::for_backward);
  const std::vector<int> last = last_readers(graph);
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape);
  shapes = value_shapes(graph, shapes);
  // Memory that dead values leave is used again: fresh memory is cleared first, which costs as much
  // as an operator that only moves elements. A tape takes the values instead.
  const ReusePlan plan = tape == nullptr ? plan_reuse(graph, shapes, last) : ReusePlan();
  std::vector<Tensor> values(graph.value_count());
  const auto owned = [&](int v) { return static_cast<std::size_t>(v) >= inputs.size(); };
  // The caller's tensors are read in place; only a tape takes copies.
  std::vector<const Tensor*> read(values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    read[i] = &inputs[i];
    if (tape != nullptr) tape->shapes.push_back(inputs[i].shape);
    if (made) made(static_cast<int>(i), inputs[i]);
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const int own = graph.value_of(i);
    std::vector<const Tensor*> operands;
    for (const int v : node.inputs) operands.push_back(read[v]);
    RunScope::current().go_on();
    const Section section(SectionKind::forward, node.name, node.op->kind());
    const Shape& shape = shapes[own];
    const ReusePlace place = tape == nullptr ? plan.places[i] : ReusePlace();
    Tensor output;
    try {
      if (tape == nullptr) {
        for (const int dead : plan.drops[i]) values[dead] = {};
      }
      if (place.from == ReusePlace::kFresh) {
        output = Tensor(shape);
      } else {
        output = std::move(values[place.from]);
        output.shape = shape;
        output.data.resize(static_cast<std::size_t>(element_count(shape)));
        for (std::size_t k = 0; k < operands.size() && place.in_place; ++k) {
          if (node.inputs[k] == place.from) operands[k] = &output;
        }
      }
      run_node(i, operands, output);
    } catch (const std::bad_alloc&) {
      throw Error("network " + graph.name + ": '" + node.name + "' (" +
                  std::string(node.op->kind()) + "): out of memory for its result " +
                  to_string(shape));
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {  // an internal one
      throw std::logic_error("network " + graph.name + ": '" + node.name + "' (" +
                             std::string(node.op->kind()) + "): " + error.what());
    }
    if (node.op->result() == ResultKind::vector)
      numerics.vector_result(step, node.name, node.op->kind(), output);
    if (observer != nullptr && *observer) (*observer)(node, output);
    if (node.op->result() != ResultKind::view) numerics.edge(step, {node.name, false}, output);
    if (tape != nullptr) tape->shapes.push_back(output.shape);
    if (made) made(own, output);
    values[own] = std::move(output);
    read[own] = &values[own];
    if (done && last[own] < 0 && i + 1 < graph.nodes.size()) done(own, std::move(values[own]));
    for (const int v : node.inputs) {
      if (last[v] != static_cast<int>(i) || read[v] == nullptr) continue;
      if (done) {
        done(v, owned(v) ? std::move(values[v]) : inputs[v]);
        values[v] = {};
      }
      read[v] = nullptr;
    }
  }
  return graph.nodes.empty() ? inputs.back() : std::move(values.back());
}

}  // namespace

Tensor forward(const Graph& graph, std::span<const Tensor> inputs, Numerics& numerics,
               const Step& step, const Observer* observer) {
  return Pass{.graph = graph, .numerics = numerics, .step = step, .observer = observer}.run(inputs);
}

Tensor forward_values(const Graph& graph, std::span<const Tensor> inputs, Numerics& numerics,
                      const Step& step, const std::function<void(int value, const Tensor&)>& made) {
  return Pass{.graph = graph, .numerics = numerics, .step = step, .made = made}.run(inputs);
}

Tensor forward(const Graph& graph, const Tensor& x, Numerics& numerics, const Step& step,
               const Observer* observer) {
  if (graph.inputs.size() > 1)
    return forward(graph, unpacked(x, graph.inputs), numerics, step, observer);
  return forward(graph, std::span(&x, 1), numerics, step, observer);
}

Tape forward_training(const Graph& graph, std::span<const Tensor> inputs, Numerics& numerics,
                      const Step& step, std::uint64_t seed) {
  return forward_training(graph, inputs, numerics, step, seed, plan_backward(graph), nullptr);
}

Tape forward_training(const Graph& graph, std::span<const Tensor> inputs, Numerics& numerics,
                      const Step& step, std::uint64_t seed, const BackwardPlan& plan,
                      const std::function<void(int value, const Tensor&)>& made) {
  Tape tape;
  tape.seed = seed;
  tape.step = step;
  const std::size_t count = graph.value_count();
  tape.values.resize(count);
  tape.contexts.resize(graph.nodes.size());
  tape.context_shapes.resize(graph.nodes.size());
  tape.kept = plan.kept;
  const auto keep = [&](int value, Tensor tensor) {
    const Uses uses = tape.kept[value];
    if (uses.none()) return;
    const auto shared = std::make_shared<const Tensor>(std::move(tensor));
    for (std::size_t u = 0; u < kUses; ++u) {
      if (!uses[u]) continue;
      const Kept kept{graph.value_name(value), static_cast<Use>(u)};
      tape.values[value][u] = numerics.save(step, kept, shared);
    }
  };
  tape.output = Pass{.graph = graph,
                     .numerics = numerics,
                     .step = step,
                     .tape = &tape,
                     .done = keep,
                     .made = made}
                    .run(inputs);
  if (tape.kept.back().any()) keep(static_cast<int>(count) - 1, tape.output);
  return tape;
}

Tape forward_training(const Graph& graph, const Tensor& x, Numerics& numerics, const Step& step,
                      std::uint64_t seed) {
  if (graph.inputs.size() > 1)
    return forward_training(graph, unpacked(x, graph.inputs), numerics, step, seed);
  return forward_training(graph, std::span(&x, 1), numerics, step, seed);
}

}  // namespace numemu::net
