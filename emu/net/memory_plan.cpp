// A pass walked by its shapes: values come, are recycled and die as in forward.cpp and
// backward.cpp.
#include "emu/net/memory_plan.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/memory.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

std::vector<Shape> inputs_of(const Graph& graph, std::size_t node,
                             const std::vector<Shape>& values) {
  std::vector<Shape> inputs;
  for (const int v : graph.nodes[node].inputs)
    inputs.push_back(values.at(static_cast<std::size_t>(v)));
  return inputs;
}

// Sums that only say how much is missing stay in range.
constexpr std::int64_t kMost = std::int64_t{1} << 60;
std::int64_t plus(std::int64_t a, std::int64_t b) {
  return std::min(kMost, std::min(a, kMost) + std::min(b, kMost));
}
std::int64_t minus(std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(0, a - b); }

class Walk {
 public:
  explicit Walk(const PlannedPass& pass)
      : graph_(pass.graph), keeps_(pass.keeps), at_once_(pass.at_once) {
    last_ = last_readers(graph_);
    for (const Parameter* parameter : graph_.parameters()) parameters_ += parameter->value.size();
    parameters_ *= keeps_ == Keeps::for_backward ? 4 : 3;
    // What is held already has parameters among it, their values at least.
    std::int64_t most = minus(memory_left() / kFloat, parameters_);
    // Inside a parallel region that is what the passes beside this one hold.
    if (omp_get_num_threads() == 1) most = std::min(most, memory_account().beside_held() / kFloat);
    most_ = minus(most, pass.beside) / at_once_;
    beside_ = pass.beside;
    shapes_ = pass.inputs;
    // A tape copies what it keeps of the inputs.
    for (const Shape& shape : shapes_) {
      held_ = plus(held_, element_count(shape));
      if (keeps_ == Keeps::for_backward) held_ = plus(held_, element_count(shape));
    }
    owned_.resize(graph_.value_count(), 0);
    need(held_);
    if (held_ > most_) refuse(graph_.inputs.at(0).name, "input", shapes_[0]);
  }

  /// Where the pass does not fit: the first such node; "" where it does.
  const std::string& refusal() const { return refusal_; }
  /// The least budget in bytes, kMost for more than can be said.
  std::int64_t least() const {
    const std::int64_t pass =
        plus(beside_, needed_ > kMost / at_once_ ? kMost : needed_ * at_once_);
    const std::int64_t claims = plus(pass, parameters_);
    if (claims > kMost / kFloat) return kMost;
    return std::max(plus(memory_account().claimed(), claims * kFloat),
                    plus(memory_account().held(), pass * kFloat));
  }
  /// Elements that Keeps::products left to the caller so far.
  std::int64_t copied() const { return copied_; }

  void forward() {
    const std::vector<Uses> kept =
        keeps_ == Keeps::for_backward ? plan_backward(graph_).kept : std::vector<Uses>();
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const std::vector<Shape> inputs = inputs_of(i);
      const Shape shape = graph_.nodes[i].op->output_shape(inputs);
      shapes_.push_back(shape);
      make(i, inputs, shape);
      for (const int v : graph_.nodes[i].inputs) {
        if (last_[static_cast<std::size_t>(v)] == static_cast<int>(i)) release(v, kept);
      }
      const int own = graph_.value_of(i);
      if (last_[static_cast<std::size_t>(own)] < 0 && i + 1 < graph_.nodes.size())
        release(own, kept);
    }
  }

  void backward() {
    const BackwardPlan plan = plan_backward(graph_);
    std::vector<std::int64_t> gradients(graph_.value_count(), 0);  // elements, over all readers
    gradients.back() = elements(graph_.value_count() - 1);
    hold(graph_.nodes.size() - 1,
         plus(gradients.back(), gradients.back()));  // it, and the tape's copy of the output
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const auto own = static_cast<std::size_t>(graph_.value_of(i));
      if (!plan.gradient[own]) continue;
      const std::vector<int>& reads = graph_.nodes[i].inputs;
      for (const int v : reads) hold(i, elements(static_cast<std::size_t>(v)));
      check(i, own_memory(i).backward);
      for (const int read : reads) {
        const auto v = static_cast<std::size_t>(read);
        if (plan.gradient[v]) {
          gradients[v] = plus(gradients[v], elements(v));
        } else {
          held_ = minus(held_, elements(v));
        }
      }
      held_ = minus(held_, std::exchange(gradients[own], 0));
    }
  }

 private:
  std::int64_t elements(std::size_t value) const { return element_count(shapes_[value]); }

  std::vector<Shape> inputs_of(std::size_t node) const {
    return net::inputs_of(graph_, node, shapes_);
  }

  OperatorMemory own_memory(std::size_t node) const {
    return operator_memory(graph_, node, shapes_);
  }

  /// The result of a node, where forward would put it, and what else the node needs.
  void make(std::size_t i, const std::vector<Shape>& inputs, const Shape& shape) {
    const Node& node = graph_.nodes[i];
    const std::int64_t size = element_count(shape);
    std::int64_t& own = owned_[static_cast<std::size_t>(graph_.value_of(i))];
    const bool recycles = keeps_ != Keeps::for_backward;
    if (recycles && !inputs.empty() && works_in_place(graph_, i, last_, inputs[0], shape)) {
      own = std::exchange(owned_[static_cast<std::size_t>(node.inputs[0])], 0);
    } else {
      own = size;
      hold(i, shape, size);
    }
    if (node.op->result() == ResultKind::product) {
      std::int64_t codes = std::min(size, kMost);
      for (const Shape& input : inputs) codes = plus(codes, element_count(input));
      if (keeps_ == Keeps::products) {
        hold(i, shape, codes);
        copied_ = plus(copied_, codes);
      }
      for (const Parameter& p : std::as_const(*node.op).parameters())
        codes = plus(codes, p.value.size());
      codes_ = std::max(codes_, codes);
    }
    const OperatorMemory more = own_memory(i);
    check(i, more.forward, shape);
    if (!recycles) hold(i, shape, more.context);
  }

  void release(int value, const std::vector<Uses>& kept) {
    const auto v = static_cast<std::size_t>(value);
    if (v >= graph_.inputs.size() && (keeps_ != Keeps::for_backward || kept[v].none()))
      held_ = minus(held_, std::exchange(owned_[v], 0));
  }

  void hold(std::size_t node, std::int64_t count) {
    hold(node, shapes_[static_cast<std::size_t>(graph_.value_of(node))], count);
  }
  void hold(std::size_t node, const Shape& result, std::int64_t count) {
    check(node, count, result);
    held_ = plus(held_, count);
  }
  void check(std::size_t node, std::int64_t more) {
    check(node, more, shapes_[static_cast<std::size_t>(graph_.value_of(node))]);
  }
  void check(std::size_t node, std::int64_t more, const Shape& result) {
    // In inference what the largest node needed stays for later results (ReusePlan).
    const bool recycles = keeps_ != Keeps::for_backward;
    const std::int64_t now = plus(held_, more);
    peak_ = recycles ? std::max(peak_, now) : now;
    const std::int64_t with_codes = plus(peak_, codes_);
    need(with_codes);
    if (with_codes > most_) refuse(graph_.nodes[node].name, graph_.nodes[node].op->kind(), result);
  }
  void need(std::int64_t elements) { needed_ = std::max(needed_, elements); }

  void refuse(std::string_view name, std::string_view kind, const Shape& result) {
    if (!refusal_.empty()) return;
    const std::int64_t count = element_count(result);
    const std::string size = count > std::numeric_limits<std::int64_t>::max() / kFloat
                                 ? "2^63 bytes or more"
                                 : bytes_text(count * kFloat);
    refusal_ = fmt::format(
        "network {}: '{}' ({}): its result {} of {} and the other tensors in memory{} do not fit "
        "the memory budget of {} (--memory)",
        graph_.name.substr(0, kLongName), name.substr(0, kLongName), kind, to_string(result), size,
        at_once_ > 1 ? fmt::format(", on {} threads,", at_once_) : "",
        bytes_text(memory_account().budget()));
  }

  static constexpr std::size_t kLongName = 60;

  const Graph& graph_;
  Keeps keeps_;
  std::int64_t at_once_, beside_ = 0;
  std::vector<int> last_;
  std::vector<Shape> shapes_;
  std::vector<std::int64_t> owned_;   // elements that a value holds, by value
  std::int64_t parameters_ = 0;       // elements, as often as they are counted
  std::int64_t most_ = 0;             // elements that a pass may hold
  std::int64_t held_ = 0, peak_ = 0;  // elements in memory, now and at the largest node so far
  std::int64_t codes_ = 0;            // of the largest product so far
  std::int64_t needed_ = 0;           // elements at the peak
  std::int64_t copied_ = 0;
  std::string refusal_;
};

/// The least budget that does, in the unit of --memory; "" where none is known to.
std::string least_text(std::int64_t bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  return bytes >= kMost ? "" : fmt::format("; needs at least {}M", (bytes + kMiB - 1) / kMiB);
}

}  // namespace

std::vector<Shape> value_shapes(const Graph& graph, std::span<const Shape> inputs) {
  std::vector<Shape> shapes(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    shapes.push_back(graph.nodes[i].op->output_shape(inputs_of(graph, i, shapes)));
  return shapes;
}

OperatorMemory operator_memory(const Graph& graph, std::size_t node,
                               std::span<const Shape> values) {
  std::vector<Shape> inputs;
  for (const int v : graph.nodes[node].inputs)
    inputs.push_back(values[static_cast<std::size_t>(v)]);
  return graph.nodes[node].op->memory(inputs);
}

std::vector<int> last_readers(const Graph& graph) {
  std::vector<int> last(graph.value_count(), -1);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const int v : graph.nodes[i].inputs) last[v] = static_cast<int>(i);
  }
  return last;
}

bool works_in_place(const Graph& graph, std::size_t node, const std::vector<int>& last_readers,
                    const Shape& first_input, const Shape& result) {
  const Node& n = graph.nodes[node];
  if (n.inputs.empty() || !n.op->in_place()) return false;
  // A view has the same elements under another shape.
  const bool same = first_input == result || (n.op->result() == ResultKind::view &&
                                              element_count(first_input) == element_count(result));
  if (!same) return false;
  const auto first = static_cast<std::size_t>(n.inputs[0]);
  return first >= graph.inputs.size() && last_readers[first] == static_cast<int>(node);
}

std::int64_t require_memory(std::span<const PlannedPass> passes) {
  if (memory_account().budget() == kNoMemoryBound) return 0;
  std::string refusal;
  std::int64_t least = 0;
  for (const PlannedPass& pass : passes) {
    if (pass.graph.nodes.empty()) continue;
    Walk walk(pass);
    try {
      walk.forward();
      if (pass.keeps == Keeps::for_backward) walk.backward();
      least = std::max(least, walk.least());
    } catch (const Error&) {  // behind a node that does not fit, shapes may exceed all bounds
      if (walk.refusal().empty()) throw;
      least = kMost;
    }
    if (refusal.empty()) refusal = walk.refusal();
  }
  if (!refusal.empty()) throw memory_error(refusal + least_text(least));
  return least;
}

void require_memory(const Graph& graph, std::span<const Shape> inputs, Keeps keeps) {
  const PlannedPass pass{graph, {inputs.begin(), inputs.end()}, keeps, omp_get_num_threads()};
  require_memory(std::span(&pass, 1));
}

void require_memory(const Graph& graph, std::span<const Tensor> inputs, Keeps keeps) {
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape);
  require_memory(graph, shapes, keeps);
}

std::int64_t kept_products(const Graph& graph, const std::vector<Shape>& inputs) {
  Walk walk({graph, inputs, Keeps::products});
  walk.forward();
  std::int64_t kept = walk.copied();
  for (const Shape& shape : inputs) kept = plus(kept, element_count(shape));
  return kept;
}

std::vector<NamedShape> output_shapes(const Graph& graph) {
  if (graph.outputs.empty()) return {};
  const std::vector<Shape> values = value_shapes(graph, batch_shapes(graph, 1));
  std::vector<NamedShape> outputs;
  for (const GraphOutput& output : graph.outputs) {
    NamedShape& own = outputs.emplace_back(NamedShape{output.name, values.at(output.value)});
    if (!own.shape.empty()) own.shape.erase(own.shape.begin());
  }
  return outputs;
}

std::vector<Shape> batch_shapes(const Graph& graph, std::int64_t samples) {
  std::vector<Shape> shapes;
  for (const GraphInput& input : graph.inputs) {
    shapes.push_back(input.shape);
    shapes.back().insert(shapes.back().begin(), samples);
  }
  return shapes;
}

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

}  // namespace numemu::net
