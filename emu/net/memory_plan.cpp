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

class Walk {
 public:
  Walk(const Graph& graph, std::span<const Shape> inputs, Keeps keeps)
      : graph_(graph), keeps_(keeps), passes_(omp_get_num_threads()), last_(last_readers(graph)) {
    std::int64_t parameters = 0;
    for (const Parameter* parameter : graph.parameters()) parameters += parameter->value.size();
    parameters *= keeps == Keeps::for_backward ? 4 : 3;
    // What is held already has parameters among it, their values at least.
    most_ = std::min(std::max<std::int64_t>(0, memory_left() / kFloat - parameters),
                     memory_beside_held() / kFloat) /
            passes_;
    shapes_.assign(inputs.begin(), inputs.end());
    // A tape copies what it keeps of the inputs.
    const int copies = keeps == Keeps::for_backward ? 2 : 1;
    for (const Shape& shape : inputs) held_ += copies * element_count(shape);
    owned_.resize(graph.value_count(), 0);
    if (held_ > most_) fail(graph.inputs.at(0).name, "input", inputs[0]);
  }

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
    hold(graph_.nodes.size() - 1, 2 * gradients.back());  // it, and the tape's copy of the output
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const auto own = static_cast<std::size_t>(graph_.value_of(i));
      if (!plan.gradient[own]) continue;
      const std::vector<int>& reads = graph_.nodes[i].inputs;
      for (const int v : reads) hold(i, elements(static_cast<std::size_t>(v)));
      check(i, own_memory(i).backward);
      for (const int read : reads) {
        const auto v = static_cast<std::size_t>(read);
        if (plan.gradient[v]) {
          gradients[v] += elements(v);
        } else {
          held_ -= elements(v);
        }
      }
      held_ -= std::exchange(gradients[own], 0);
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
      std::int64_t codes = size;
      for (const Shape& input : inputs) codes += element_count(input);
      if (keeps_ == Keeps::products) hold(i, shape, codes);
      for (const Parameter& p : std::as_const(*node.op).parameters()) codes += p.value.size();
      codes_ = std::max(codes_, codes);
    }
    const OperatorMemory more = own_memory(i);
    check(i, more.forward, shape);
    if (!recycles) hold(i, shape, more.context);
  }

  void release(int value, const std::vector<Uses>& kept) {
    const auto v = static_cast<std::size_t>(value);
    if (v >= graph_.inputs.size() && (keeps_ != Keeps::for_backward || kept[v].none()))
      held_ -= std::exchange(owned_[v], 0);
  }

  void hold(std::size_t node, std::int64_t count) {
    hold(node, shapes_[static_cast<std::size_t>(graph_.value_of(node))], count);
  }
  void hold(std::size_t node, const Shape& result, std::int64_t count) {
    check(node, count, result);
    held_ += count;
  }
  void check(std::size_t node, std::int64_t more) {
    check(node, more, shapes_[static_cast<std::size_t>(graph_.value_of(node))]);
  }
  void check(std::size_t node, std::int64_t more, const Shape& result) {
    // Each of the terms is at most most_ or refused at once, so that nothing overflows.
    if (more <= most_ && held_ + more <= most_) {
      // In inference what the largest node needed stays for later results (ReusePlan).
      const bool recycles = keeps_ != Keeps::for_backward;
      peak_ = recycles ? std::max(peak_, held_ + more) : held_ + more;
      if (codes_ <= most_ - peak_) return;
    }
    fail(graph_.nodes[node].name, graph_.nodes[node].op->kind(), result);
  }

  [[noreturn]] void fail(std::string_view name, std::string_view kind, const Shape& result) const {
    const std::int64_t count = element_count(result);
    const std::string size = count > std::numeric_limits<std::int64_t>::max() / kFloat
                                 ? "2^63 bytes or more"
                                 : bytes_text(count * kFloat);
    throw Error(fmt::format(
        "network {}: '{}' ({}): its result {} of {} and the other tensors in memory{} do not fit "
        "the memory budget of {} (--memory)",
        graph_.name.substr(0, kLongName), name.substr(0, kLongName), kind, to_string(result), size,
        passes_ > 1 ? fmt::format(", on {} threads,", passes_) : "", bytes_text(memory_budget())));
  }

  static constexpr std::size_t kLongName = 60;

  const Graph& graph_;
  Keeps keeps_;
  int passes_;
  std::vector<int> last_;
  std::vector<Shape> shapes_;
  std::vector<std::int64_t> owned_;   // elements that a value holds, by value
  std::int64_t most_ = 0;             // elements that a pass may hold
  std::int64_t held_ = 0, peak_ = 0;  // elements in memory, now and at the largest node so far
  std::int64_t codes_ = 0;            // of the largest product so far
};

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

void require_memory(const Graph& graph, std::span<const Shape> inputs, Keeps keeps) {
  if (memory_budget() == std::numeric_limits<std::int64_t>::max() || graph.nodes.empty()) return;
  Walk walk(graph, inputs, keeps);
  walk.forward();
  if (keeps == Keeps::for_backward) walk.backward();
}

void require_memory(const Graph& graph, std::span<const Tensor> inputs, Keeps keeps) {
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape);
  require_memory(graph, shapes, keeps);
}

}  // namespace numemu::net
