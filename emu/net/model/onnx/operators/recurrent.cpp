// ONNX's recurrent layers: a node for each direction, then views for Y, Y_h and Y_c.
#include "emu/net/ops/recurrent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// The inputs of the three operators.
enum Input : std::size_t {
  kX,
  kWeight,
  kRecurrent,
  kBias,
  kLengths,
  kInitialState,
  kInitialCells,
  kPeepholes
};

/// What the three operators have in common.
struct Layer {
  std::int64_t gates = 1, hidden = 1, in = 1, time = 1;
  std::int64_t directions = 1;
  bool first_reversed = false;
  bool batch_first = false;  ///< layout 1
};

bool is_zero(const Tensor& tensor) {
  return std::ranges::all_of(tensor.data, [](float v) { return v == 0; });
}

/// Whether a value of the graph is zero whatever the inputs are: zeros of the batch's shape, and
/// parts of them.
bool is_zero(const Graph& graph, int value) {
  constexpr std::size_t kMostZeros = 100;  // exporters write about ten nodes
  std::set<int> seen{value};
  for (std::vector<int> left{value}; !left.empty();) {
    const int v = left.back() - static_cast<int>(graph.inputs.size());
    left.pop_back();
    if (v < 0) return false;
    const Node& node = graph.nodes[static_cast<std::size_t>(v)];
    const std::string_view kind = node.op->kind();
    if (kind == "constant" && !is_zero(std::as_const(*node.op).parameters()[0].value)) return false;
    // repeated() chooses between the same value twice.
    const bool chosen = kind == "where";
    if (!chosen && kind != "add" && node.op->result() != ResultKind::view) return false;
    for (std::size_t i = chosen ? 1 : 0; i < node.inputs.size(); ++i) {
      if (seen.insert(node.inputs[i]).second) left.push_back(node.inputs[i]);
      if (seen.size() > kMostZeros) return false;
    }
  }
  return true;
}

void require_defaults(const NodeImport& node, const std::vector<std::string>& activations) {
  if (node->find("clip") != nullptr && node->number_or("clip", 0) != 0)
    throw Error("clip is not supported");
  if (node->integer_or("input_forget", 0) != 0) throw Error("input_forget is not supported");
  const OnnxAttribute* given = node->find("activations");
  if (given == nullptr || given->type != OnnxAttributeType::texts) return;
  for (std::size_t i = 0; i < given->texts.size(); ++i) {
    const std::string& expected = activations[i % activations.size()];
    std::string found(given->texts[i]);
    const auto same = [](char a, char b) { return (a | 32) == (b | 32); };
    if (std::ranges::equal(found, expected, same)) continue;
    throw Error(fmt::format("expected the activation {}, found {}", expected, printable(found)));
  }
}

/// Rows of matrix `direction` of a constant [directions, gates hidden, ..], gate by gate in the
/// order given.
Tensor part(const Tensor& all, std::int64_t direction, const Ints& gates, std::int64_t hidden) {
  const std::int64_t each = all.size() / all.dim(0), rows = all.dim(1), width = each / rows;
  Tensor out({std::ssize(gates) * hidden, width});
  for (std::int64_t g = 0; g < std::ssize(gates); ++g)
    std::copy_n(
        all.data.data() + direction * each + gates[static_cast<std::size_t>(g)] * hidden * width,
        hidden * width, out.data.data() + g * hidden * width);
  if (all.shape.size() == 2) out.shape = {out.size()};
  return out;
}

void require_shape(const Tensor& tensor, const Shape& expected, std::string_view what) {
  if (tensor.shape != expected)
    throw Error(fmt::format("expected {} of shape {}, found {}", what, to_string(expected),
                            to_string(tensor.shape)));
}

class RecurrentNode {
 public:
  RecurrentNode(const NodeImport& node, std::int64_t gates)
      : node_(node), name_(node.layer_name(kWeight)) {
    weight_ = node.weights(kWeight, 3);
    recurrent_ = node.weights(kRecurrent, 3);
    layer_.gates = gates;
    layer_.hidden = recurrent_.dim(2);
    layer_.in = weight_.dim(2);
    const std::string_view direction = node->text_or("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      throw Error("expected a known direction");
    layer_.directions = direction == "bidirectional" ? 2 : 1;
    layer_.first_reversed = direction == "reverse";
    layer_.batch_first = node->integer_or("layout", 0) != 0;
    const std::int64_t rows = gates * layer_.hidden;
    if (node->integer_or("hidden_size", layer_.hidden) != layer_.hidden)
      throw Error("expected hidden_size to be that of the weights");
    require_shape(weight_, {layer_.directions, rows, layer_.in}, "W");
    require_shape(recurrent_, {layer_.directions, rows, layer_.hidden}, "R");
    if (node.has_input(kBias)) bias_ = node.weights(kBias, 2);
    if (!bias_.empty()) require_shape(bias_, {layer_.directions, 2 * rows}, "B");
    if (node.has_input(kPeepholes) && !is_zero(node.constant(kPeepholes).tensor()))
      throw Error("peepholes are not supported");
    x_ = batch_first(node.plain(kX), "X");
    layer_.time = x_.shapes[0][1];
    read_lengths();
  }

  /// What differs between the three operators.
  struct Form {
    Ints order;              ///< the operator's gates, as numbered in ONNX
    std::size_t states = 1;  ///< h, or h and c
    bool own_bias = false;   ///< the recurrent bias stays apart, as parameter 3
    bool candidate = false;  ///< the last gate's recurrent weights do, as parameter 3
  };
  /// Y, Y_h and Y_c; `make(options)` gives the operator of one direction.
  template <class Make>
  OnnxValues results(const Form& form, const Make& make) {
    OnnxValues rows, last_states, last_cells;
    for (std::int64_t d = 0; d < layer_.directions; ++d) {
      const bool reversed = d == 1 || layer_.first_reversed;
      const OnnxValues initial = initial_states(d, form.states);
      std::unique_ptr<Op> op = make(RecurrentOptions{layer_.in, layer_.hidden, !initial.empty()});
      set_weights(*op, d, form);
      OnnxValues reads{reversed ? turned(x_, false) : x_};
      reads.insert(reads.end(), initial.begin(), initial.end());
      OnnxValue y = node_.add(d == 1 ? name_ + ".reverse" : name_, std::move(op), reads, false);
      const std::int64_t hidden = layer_.hidden;
      if (node_.is_read(1) || node_.is_read(2)) {
        const OnnxValue end = last_step(y);
        if (node_.is_read(1)) last_states.push_back(ended(cut(end, 2, 0, hidden), initial, 0));
        if (node_.is_read(2)) last_cells.push_back(ended(cut(end, 2, hidden), initial, 1));
      }
      if (!node_.is_read(0)) continue;
      y = cut(y, 2, 0, hidden);
      rows.push_back(reversed ? turned(y, true) : within(y));
    }
    return {rows.empty() ? OnnxValue() : whole(rows), ends(last_states), ends(last_cells)};
  }

 private:
  OnnxValue node(std::unique_ptr<Op> op, const OnnxValues& reads) {
    return node_.add(node_.name(), std::move(op), reads, false);
  }

  /// From `start` to `end` along an axis; itself where that is all of it.
  OnnxValue cut(const OnnxValue& x, std::int64_t axis, std::int64_t start,
                std::int64_t end = SliceRange::kToTheEnd) {
    const std::int64_t size = x.extent(axis);
    if ((start == 0 || start == -size) && end >= size) return x;
    return node(std::make_unique<Slice>(std::vector<SliceRange>{{axis, start, end, 1}}), {x});
  }
  OnnxValue as(std::string_view op, const OnnxValues& operands) {
    return node_.as_operator(op, operands).at(0);
  }
  OnnxValue chosen(const OnnxValue& x, const OnnxValue& steps) {
    return node(std::make_unique<IndexedGather>(
                    IndexedOptions{.indexing = Indexing::tuples, .batch_axes = 1}),
                {x, steps});
  }
  /// x [batch, time, width], zero from the end of each sequence on.
  OnnxValue within(const OnnxValue& x) {
    return lengths_ ? as("Where", {as("Less", {steps_, *lengths_}), x, node_.number(0)}) : x;
  }
  /// The last step of each sequence, [batch, 1, width].
  OnnxValue last_step(const OnnxValue& x) {
    return lengths_ ? chosen(x, as("Sub", {*lengths_, node_.number(1)})) : cut(x, 1, -1);
  }
  /// That, but for sequences without steps the state that they began with.
  OnnxValue ended(const OnnxValue& last, const OnnxValues& initial, std::size_t state) {
    if (!lengths_) return last;
    const OnnxValue begun =
        initial.empty()
            ? node_.number(0)
            : node(std::make_unique<Reshape>(Shape{-1, 1, layer_.hidden}), {initial.at(state)});
    return as("Where", {as("Greater", {*lengths_, node_.number(0)}), last, begun});
  }

  /// The steps in opposite order; of sequences with lengths each within its own, and what comes
  /// after stays, or is zero.
  OnnxValue turned(const OnnxValue& x, bool zero) {
    if (layer_.time == 1) return zero ? within(x) : x;
    if (lengths_) {
      const OnnxValue back = as("Sub", {as("Sub", {*lengths_, node_.number(1)}), steps_});
      const OnnxValue inside = as("Less", {steps_, *lengths_});
      const OnnxValue y = chosen(x, as("Where", {inside, back, steps_}));
      return zero ? within(y) : y;
    }
    return node(
        std::make_unique<Slice>(std::vector<SliceRange>{{1, -1, SliceRange::kToTheStart, -1}}),
        {x});
  }
  OnnxValue transposed(const OnnxValue& x, Ints order) {
    return node(std::make_unique<Transpose>(std::move(order)), {x});
  }

  /// A sequence as [batch, time, width].
  OnnxValue batch_first(const OnnxValue& x, std::string_view what) {
    if (x.rank() != 3)
      throw Error(fmt::format("expected {} to have 3 axes, found {}", what, x.rank()));
    const std::size_t batch = layer_.batch_first ? 0 : 1;
    if (x.shapes[0][1 - batch] != x.shapes[1][1 - batch])
      throw Error(
          "expected steps that do not depend on the batch, which is the first axis of an input "
          "unless the file calls a later one batch; export with batch_first=True, or with the name "
          "of the batch's axis, as in dynamic_axes={'x': {1: 'batch'}}");
    return layer_.batch_first ? x : transposed(x, {1, 0, 2});
  }

  /// Lengths that all are the number of steps are none.
  void read_lengths() {
    if (!node_.has_input(kLengths)) return;
    OnnxValue given = node_.input(kLengths);
    if (given.is_constant()) {
      const Ints lengths = node_.constant(kLengths).integers();
      if (std::ranges::all_of(lengths, [&](std::int64_t n) { return n == layer_.time; })) return;
      if (std::ranges::any_of(lengths, [&](std::int64_t n) { return n < 0 || n > layer_.time; }))
        throw Error(
            fmt::format("expected sequence_lens of 0 to {}, the number of steps", layer_.time));
    }
    given = node_.to_plain(given);
    if (given.rank() != 1 || given.shapes[0][0] != x_.shapes[0][0] ||
        given.shapes[1][0] != x_.shapes[1][0])
      throw Error("expected sequence_lens with one number for each sample");
    lengths_ = node(std::make_unique<Reshape>(Shape{-1, 1, 1}), {given});
    steps_ = node_.numbers(whole_numbers({1, layer_.time, 1}, [](std::int64_t t) { return t; }));
  }

  /// The states before the first step of a direction, [batch, hidden] each; none where they are
  /// zero.
  OnnxValues initial_states(std::int64_t direction, std::size_t count) {
    bool zero = true;
    for (std::size_t i = kInitialState; i < kInitialState + count; ++i) {
      if (!node_.has_input(i)) continue;
      const OnnxValue& given = node_.input(i);
      zero = zero && (given.is_constant() ? is_zero(node_.constant(i).tensor())
                                          : is_zero(node_.importer().graph(), given.number));
    }
    OnnxValues out;
    for (std::size_t i = kInitialState; !zero && i < kInitialState + count; ++i)
      out.push_back(initial_state(i, direction));
    return out;
  }

  OnnxValue initial_state(std::size_t index, std::int64_t direction) {
    const std::int64_t batch = layer_.batch_first ? 0 : 1;
    OnnxValue state;
    if (node_.has_input(index)) {
      state = node_.input(index);
      if (state.rank() != 3) throw Error("expected initial states of 3 axes");
      if (state.is_constant())
        state.constant = value_of(one_sample(*held(state.constant), batch)).constant;
    } else {
      const Shape dims = layer_.batch_first ? Shape{1, layer_.directions, layer_.hidden}
                                            : Shape{layer_.directions, 1, layer_.hidden};
      state = value_of(real_numbers(dims, [](std::int64_t) { return 0.0f; }));
    }
    state = cut(node_.to_plain(state), 1 - batch, direction, direction + 1);
    if (state.shapes[0] == state.shapes[1])
      state = node_.repeated(state, static_cast<std::size_t>(batch));
    return node(std::make_unique<Reshape>(Shape{-1, layer_.hidden}), {state});
  }

  void set_weights(Op& op, std::int64_t d, const Form& form) {
    const std::int64_t hidden = layer_.hidden;
    Ints recurrent = form.order;
    if (form.candidate) recurrent.pop_back();
    set_parameter(op, 0, part(weight_, d, form.order, hidden));
    set_parameter(op, 1, part(recurrent_, d, recurrent, hidden));
    if (form.candidate) set_parameter(op, 3, part(recurrent_, d, {form.order.back()}, hidden));
    if (bias_.empty()) return;
    Ints second = form.order;  // the recurrent biases follow those of the input
    for (std::int64_t& gate : second) gate += layer_.gates;
    Tensor bias = part(bias_, d, form.order, hidden), other = part(bias_, d, second, hidden);
    if (form.own_bias) {
      set_parameter(op, 3, std::move(other));
    } else {
      for (std::int64_t i = 0; i < bias.size(); ++i) bias.data[i] += other.data[i];
    }
    set_parameter(op, 2, std::move(bias));
  }

  /// Y: [time, directions, batch, hidden], or [batch, time, directions, hidden].
  OnnxValue whole(const OnnxValues& rows) {
    OnnxValue y = rows.size() == 1 ? rows[0] : node(std::make_unique<Concat>(2), rows);
    y = node(std::make_unique<Reshape>(Shape{0, 0, layer_.directions, layer_.hidden}), {y});
    return layer_.batch_first ? y : transposed(y, {1, 2, 0, 3});
  }
  /// Y_h and Y_c: [directions, batch, hidden], or [batch, directions, hidden].
  OnnxValue ends(const OnnxValues& last) {
    if (last.empty()) return {};
    const OnnxValue y = last.size() == 1 ? last[0] : node(std::make_unique<Concat>(1), last);
    return layer_.batch_first ? y : transposed(y, {1, 0, 2});
  }

  const NodeImport& node_;
  Layer layer_;
  std::string name_;
  Tensor weight_, recurrent_, bias_;
  OnnxValue x_;
  std::optional<OnnxValue> lengths_;  ///< [batch, 1, 1]; none: all have every step
  OnnxValue steps_;                   ///< 0 to time - 1, [1, time, 1]
};

OnnxValues lstm(const NodeImport& node) {
  require_defaults(node, {"Sigmoid", "Tanh", "Tanh"});
  const bool cells = node.is_read(2);
  // ONNX's gates are i, o, f, c.
  return RecurrentNode(node, 4).results(
      {.order = {0, 2, 3, 1}, .states = 2},
      [&](const RecurrentOptions& o) { return std::make_unique<Lstm>(o, cells); });
}

OnnxValues gru(const NodeImport& node) {
  require_defaults(node, {"Sigmoid", "Tanh"});
  const bool after = node->integer_or("linear_before_reset", 0) != 0;
  return RecurrentNode(node, 3).results(
      {.order = {0, 1, 2}, .own_bias = after, .candidate = !after},
      [&](const RecurrentOptions& o) { return std::make_unique<Gru>(o, after); });
}

OnnxValues rnn(const NodeImport& node) {
  const OnnxAttribute* given = node->find("activations");
  const bool rectified = given != nullptr && !given->texts.empty() &&
                         (given->texts[0] == "Relu" || given->texts[0] == "relu");
  require_defaults(node, {rectified ? "Relu" : "Tanh"});
  return RecurrentNode(node, 1).results({.order = {0}}, [&](const RecurrentOptions& o) {
    return std::make_unique<Rnn>(o, rectified);
  });
}

}  // namespace

const OnnxHandlers& onnx_recurrent_handlers() {
  static const OnnxHandlers kHandlers = {{"GRU", gru}, {"LSTM", lstm}, {"RNN", rnn}};
  return kHandlers;
}

}  // namespace numemu::net
