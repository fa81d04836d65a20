// A pass walked by its shapes: values come, are recycled and die as in forward.cpp and
// backward.cpp.
#include "emu/net/memory_plan.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "emu/net/backward_plan.hpp"
#include "emu/net/held_memory.hpp"
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
    if (omp_get_num_threads() == 1) most = std::min(most, memory_beside_held() / kFloat);
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
    return std::max(plus(memory_claimed(), claims * kFloat), plus(memory_held(), pass * kFloat));
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
        at_once_ > 1 ? fmt::format(", on {} threads,", at_once_) : "", bytes_text(memory_budget()));
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
  const auto* holder = dynamic_cast<const HoldsMemory*>(graph.nodes[node].op.get());
  if (holder == nullptr) return {};
  std::vector<Shape> inputs;
  for (const int v : graph.nodes[node].inputs)
    inputs.push_back(values[static_cast<std::size_t>(v)]);
  return holder->memory(inputs);
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

void require_memory(std::span<const PlannedPass> passes) {
  if (memory_budget() == std::numeric_limits<std::int64_t>::max()) return;
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
  if (!refusal.empty()) throw Error(refusal + least_text(least));
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

std::vector<Shape> batch_shapes(const Graph& graph, std::int64_t samples) {
  std::vector<Shape> shapes;
  for (const GraphInput& input : graph.inputs) {
    shapes.push_back(input.shape);
    shapes.back().insert(shapes.back().begin(), samples);
  }
  return shapes;
}

}  // namespace numemu::net
