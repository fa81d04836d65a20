// The forward passes: every node's result goes through the moments, values die after their last
// reader.
#include "emu/net/forward.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <stdexcept>
#include <utility>

#include "emu/net/backward_plan.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/profile.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"

namespace numemu::net {

namespace {

class Planner {
 public:
  Planner(const Graph& graph, std::span<const Shape> shapes, const std::vector<int>& last)
      : graph_(graph), shapes_(shapes), last_(last), capacity_(shapes.size(), 0) {}

  ReusePlan plan() {
    ReusePlan plan;
    plan.places.resize(graph_.nodes.size());
    plan.drops.resize(graph_.nodes.size());
    for (std::size_t i = 0; i < plan.places.size(); ++i) plan.places[i].in_place = in_place(i);
    find_spare(plan);
    for (std::size_t i = 0; i < plan.places.size(); ++i) {
      place(i, plan.places[i]);
      while (!dead_.empty() && (kept_ > spare_[i] || too_large(largest_behind_[i])))
        drop(std::prev(dead_.end()), plan.drops[i]);
      bury(i);
    }
    return plan;
  }

 private:
  using Dead = std::multimap<std::int64_t, int>;  ///< by capacity in elements

  std::int64_t size_of(int value) const {
    return element_count(shapes_[static_cast<std::size_t>(value)]);
  }

  bool in_place(std::size_t node) const {
    const std::vector<int>& reads = graph_.nodes[node].inputs;
    return !reads.empty() &&
           works_in_place(graph_, node, last_, shapes_[static_cast<std::size_t>(reads[0])],
                          shapes_[static_cast<std::size_t>(graph_.value_of(node))]);
  }

  /// spare_[i]: elements that may lie dead at node i; until_[v]: the last node that needs the
  /// memory of v, which results may take over in place.
  void find_spare(const ReusePlan& plan) {
    const std::size_t nodes = graph_.nodes.size();
    until_.resize(shapes_.size());
    std::vector<std::int64_t> change(nodes + 1, 0);
    for (std::size_t i = nodes; i-- > 0;) {
      const auto own = static_cast<std::size_t>(graph_.value_of(i));
      const int reader = last_[own];
      until_[own] = reader < 0 ? static_cast<int>(i) : reader;
      if (reader < 0) continue;
      const auto next = static_cast<std::size_t>(reader);
      if (plan.places[next].in_place && graph_.nodes[next].inputs[0] == static_cast<int>(own))
        until_[own] = until_[static_cast<std::size_t>(graph_.value_of(next))];
    }
    for (std::size_t i = 0; i < nodes; ++i) {
      if (plan.places[i].in_place) continue;
      const int own = graph_.value_of(i);
      change[i] += size_of(own);
      change[static_cast<std::size_t>(until_[static_cast<std::size_t>(own)]) + 1] -= size_of(own);
    }
    spare_.resize(nodes);
    std::int64_t alive = 0, most = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      alive += change[i];
      spare_[i] = alive + operator_memory(graph_, i, shapes_).forward;
      most = std::max(most, spare_[i]);
    }
    for (std::int64_t& elements : spare_) elements = most - elements;
    largest_behind_.assign(nodes, 0);
    for (std::size_t i = nodes; i-- > 1;) {
      const std::int64_t own = plan.places[i].in_place ? 0 : size_of(graph_.value_of(i));
      largest_behind_[i - 1] = std::max(largest_behind_[i], own);
    }
  }

  /// Whether the largest dead memory would lie idle for the most part under a result of that size.
  bool too_large(std::int64_t size) const { return std::prev(dead_.end())->first - size > size; }

  void place(std::size_t node, ReusePlace& place) {
    const int own = graph_.value_of(node);
    std::int64_t& capacity = capacity_[static_cast<std::size_t>(own)];
    if (place.in_place) {
      place.from = graph_.nodes[node].inputs[0];
      capacity = capacity_[static_cast<std::size_t>(place.from)];
      return;
    }
    capacity = size_of(own);
    const auto fits = dead_.lower_bound(capacity);
    if (fits == dead_.end() || fits->first - capacity > capacity) return;
    const auto begin = spare_.begin() + static_cast<std::ptrdiff_t>(node),
               end = spare_.begin() + until_[static_cast<std::size_t>(own)] + 1;
    const std::int64_t waste = fits->first - capacity;
    if (waste > 0 && *std::min_element(begin, end) < waste) return;
    for (auto spare = begin; waste > 0 && spare != end; ++spare) *spare -= waste;
    capacity = fits->first;
    std::vector<int> taken;
    drop(fits, taken);
    place.from = taken[0];
  }

  void drop(Dead::iterator dead, std::vector<int>& values) {
    values.push_back(dead->second);
    kept_ -= dead->first;
    dead_.erase(dead);
  }

  /// What nobody reads after the node.
  void bury(std::size_t node) {
    const auto die = [&](int value) {
      std::int64_t& capacity = capacity_[static_cast<std::size_t>(value)];
      dead_.emplace(capacity, value);
      kept_ += std::exchange(capacity, 0);
    };
    const std::vector<int>& reads = graph_.nodes[node].inputs;
    for (std::size_t k = 0; k < reads.size(); ++k) {
      const auto v = static_cast<std::size_t>(reads[k]);
      const bool owned = v >= graph_.inputs.size() && capacity_[v] > 0;
      if (!owned || last_[v] != static_cast<int>(node)) continue;
      if (in_place(node) && reads[k] == reads[0]) continue;
      die(reads[k]);
    }
    const int own = graph_.value_of(node);
    if (last_[static_cast<std::size_t>(own)] < 0 && node + 1 < graph_.nodes.size()) die(own);
  }

  const Graph& graph_;
  std::span<const Shape> shapes_;
  const std::vector<int>& last_;
  std::vector<int> until_;
  std::vector<std::int64_t> spare_, capacity_;
  std::vector<std::int64_t> largest_behind_;  ///< node i: of the results behind it that take memory
  Dead dead_;
  std::int64_t kept_ = 0;  ///< elements in dead_
};

}  // namespace

ReusePlan plan_reuse(const Graph& graph, std::span<const Shape> shapes,
                     const std::vector<int>& last) {
  return Planner(graph, shapes, last).plan();
}

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

Tensor forward(const Graph& graph, const Tensor& x, Numerics& numerics, const Step& step,
               const Observer* observer) {
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
  return forward_training(graph, std::span(&x, 1), numerics, step, seed);
}

}  // namespace numemu::net
