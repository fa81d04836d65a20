// ONNX operators that work element by element, with broadcasting.
#include "emu/net/ops/pointwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"

namespace numemu::net {

bool align(const NodeImport& node, OnnxValues& operands) {
  std::size_t rank = 0;
  for (const OnnxValue& value : operands) rank = std::max(rank, value.image ? value.rank() : 0);
  bool images = rank > 0;
  for (const OnnxValue& value : operands)
    images = images && (value.is_constant() ? value.rank() <= rank : value.rank() == rank);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    OnnxValue& value = operands[i];
    if (value.is_constant()) {
      value = node.as_graph(value, node->inputs[i], images ? rank : 0);
    } else {
      value = images ? node.to_image(value) : node.to_plain(value);
    }
  }
  return images;
}

namespace {

/// A number of an operator: an input of one element (the bounds of Clip from operator set 11 on),
/// or an attribute.
float number_of(const NodeImport& node, std::size_t index, const PointwiseParameter& parameter) {
  if (!node.has_input(index)) return node->number_or(parameter.onnx, parameter.value);
  return node.one_number(index, fmt::format("expected one number as {}", parameter.onnx));
}

OnnxValues unary(const NodeImport& node) {
  const PointwiseRule& rule = rule_named(pointwise_rules(), node->op_type);
  const OnnxValue x = node.value();
  PointwiseNumbers numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const PointwiseParameter& parameter = rule.parameters[i];
    if (parameter.name != nullptr) numbers[i] = number_of(node, i + 1, parameter);
  }
  return {node.add<Pointwise>({x}, x.image, rule, numbers)};
}

/// The value under a shape with that many axes of one element behind its own.
OnnxValue with_axes_behind(const NodeImport& node, const OnnxValue& value, std::int64_t count) {
  if (count == 0) return value;
  if (!value.is_constant()) {
    const OnnxValue x = node.to_plain(value);
    std::vector<Extent> target = x.extents();
    target.insert(target.end(), static_cast<std::size_t>(count), Extent{1});
    return node.reshape_to(x, target);
  }
  OnnxValue out = value;
  auto constant = std::make_shared<OnnxConstant>(*value.constant);
  constant->dims.insert(constant->dims.end(), static_cast<std::size_t>(count), 1);
  out.constant = std::move(constant);
  return out;
}

OnnxValues operands_of(const NodeImport& node, std::size_t count) {
  if (count < 1) throw Error("expected an input");
  OnnxValues operands;
  for (std::size_t i = 0; i < count; ++i) operands.push_back(node.input(i));
  if (node.opset() < 7 && count == 2 && node->find("axis") != nullptr) {
    // Before operator set 7 the axes of the second operand begin at `axis` of the first.
    const std::int64_t axis = axis_in(node->integer_or("axis", 0), operands[0].rank()),
                       behind = std::ssize(operands[0].extents()) - axis -
                                std::ssize(operands[1].extents());
    if (behind < 0) throw Error("expected a second operand with no more axes than there are");
    operands[1] = with_axes_behind(node, operands[1], behind);
  }
  return operands;
}

bool is_whole(const OnnxValue& value) {
  return value.is_constant() ? value.constant->integer : value.integer;
}

/// A row of the table of two inputs, with its operands in that order or the other.
OnnxValue binary_of(const NodeImport& node, std::string_view kind, bool swaps = false) {
  OnnxValues operands = operands_of(node, 2);
  const bool images = align(node, operands);
  if (swaps) std::swap(operands[0], operands[1]);
  return node.add<Binary>(operands, images, kind);
}

OnnxValues binary(const NodeImport& node) {
  return {binary_of(node, rule_named(binary_rules(), node->op_type).kind)};
}

/// Quotients of whole numbers are cut.
OnnxValues divide(const NodeImport& node) {
  const bool whole = is_whole(node.input(0)) && is_whole(node.input(1));
  return {binary_of(node, whole ? "quotient" : "divide")};
}

OnnxValues modulo(const NodeImport& node) {
  return {binary_of(node, node->integer_or("fmod", 0) != 0 ? "remainder" : "modulo")};
}

/// What an operator of truth values, 0 and 1, is in the table of two inputs.
struct Logic {
  std::string_view onnx, kind;
  bool compares = true;  ///< the result is such where the operands are not
  bool swaps = false;
};
constexpr Logic kLogic[] = {
    {"And", "minimum", false},       {"Equal", "equal"},
    {"Greater", "greater"},          {"GreaterOrEqual", "greater_or_equal"},
    {"Less", "greater", true, true}, {"LessOrEqual", "greater_or_equal", true, true},
    {"Or", "maximum", false}};

OnnxValues logic(const NodeImport& node) {
  const Logic& row = rule_named(std::span<const Logic>(kLogic), node->op_type);
  const OnnxValue y = binary_of(node, row.kind, row.swaps);
  return {as_whole(y, y.integer || row.compares)};
}

OnnxValue equal_to(const NodeImport& node, const OnnxValue& x, const OnnxValue& y) {
  return as_whole(node.binary("equal", x, y));
}

OnnxValues logical_not(const NodeImport& node) {
  const OnnxValue x = node.value();
  return {equal_to(node, x, node.number(0))};
}

OnnxValues logical_xor(const NodeImport& node) {
  return {equal_to(node, binary_of(node, "equal"), node.number(0))};
}

/// NaN alone differs from itself.
OnnxValues is_nan(const NodeImport& node) {
  const OnnxValue x = node.value();
  return {equal_to(node, equal_to(node, x, x), node.number(0))};
}

OnnxValues is_infinite(const NodeImport& node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  OnnxValue x = node.value();
  const bool positive = node->integer_or("detect_positive", 1) != 0,
             negative = node->integer_or("detect_negative", 1) != 0;
  if (positive && negative) x = node.unary("abs", x);
  if (!positive && !negative) throw Error("expected to detect positive or negative infinities");
  return {equal_to(node, x, node.number(positive ? kInfinity : -kInfinity))};
}

/// Slopes are trained.
OnnxValues prelu(const NodeImport& node) {
  const OnnxValue& slopes = node.input(1);
  const bool old = node.opset() < 7 && slopes.rank() == 1;  // a slope for each channel
  if (!slopes.is_constant() && !old) return binary(node);
  OnnxValue x = node.value();
  if (old) {
    const bool shared = slopes.extents()[0].value == 1;
    const std::int64_t behind = shared ? 0 : std::ssize(x.extents()) - 2;
    if (behind < 0) throw Error("expected slopes of channels with an input of two axes or more");
    OnnxValues operands{node.to_plain(x), with_axes_behind(node, slopes, behind)};
    const bool images = align(node, operands);
    return {node.add<Binary>(operands, images, "prelu")};
  }
  if (node.input(1).rank() > 4) x = node.to_plain(x);
  const OnnxConstant& given = node.constant(1);
  Tensor tensor = x.image && given.elements.size() != 1 ? channels_last(given, x.rank()).tensor()
                                                        : given.tensor();
  if (tensor.shape.empty()) tensor.shape = {1};
  auto op = std::make_unique<Constant>(std::move(tensor), true);
  const OnnxValue slope = node.add(node.layer_name(1), std::move(op), {}, false);
  return {node.binary("prelu", x, slope)};
}

OnnxValues gelu(const NodeImport& node) {
  const std::string_view kind = node->text_or("approximate", "none");
  if (kind != "none" && kind != "tanh") throw Error("expected approximate 'none' or 'tanh'");
  const OnnxValue x = node.value();
  return {node.unary(kind == "tanh" ? "gelu_tanh" : "gelu", x)};
}

/// Any number of inputs, from left to right.
OnnxValue chain(const NodeImport& node, std::string_view kind) {
  OnnxValues operands = operands_of(node, node->inputs.size());
  const bool images = align(node, operands);
  OnnxValue total = operands.at(0);
  for (std::size_t i = 1; i < operands.size(); ++i)
    total = node.add<Binary>({total, operands[i]}, images, kind);
  return total;
}

OnnxValues sum(const NodeImport& node) { return {chain(node, "add")}; }

OnnxValues mean(const NodeImport& node) {
  const OnnxValue total = chain(node, "add");
  return {node.binary("divide", total, static_cast<float>(node->inputs.size()))};
}

OnnxValues where(const NodeImport& node) {
  OnnxValues operands = operands_of(node, 3);
  const bool images = align(node, operands);
  return {as_whole(node.add<Where>(operands, images), operands[1].integer && operands[2].integer)};
}

/// Max and Min; of one value and numbers: a Clip with one bound.
template <bool kMaximum>
OnnxValues extreme(const NodeImport& node) {
  const OnnxValue* x = nullptr;
  constexpr float kEverything = std::numeric_limits<float>::infinity();
  float limit = kMaximum ? -kEverything : kEverything;
  for (std::size_t i = 0; i < node->inputs.size(); ++i) {
    const OnnxValue& value = node.input(i);
    if (!value.is_constant() && x == nullptr) {
      x = &value;
      continue;
    }
    if (!value.is_constant() || value.constant->size() != 1)
      return {chain(node, kMaximum ? "maximum" : "minimum")};
    const float number = node.constant(i).tensor().data[0];
    limit = kMaximum ? std::max(limit, number) : std::min(limit, number);
  }
  if (x == nullptr) return {chain(node, kMaximum ? "maximum" : "minimum")};
  return {kMaximum ? node.clip(*x, limit, kEverything) : node.clip(*x, -kEverything, limit)};
}

/// max(0, min(1, slope x + 0.5)).
OnnxValue hard_sigmoid_of(const NodeImport& node, const OnnxValue& x, float slope, float offset) {
  return node.clip(node.binary("add", node.binary("multiply", x, slope), offset), 0, 1);
}

OnnxValues hard_sigmoid(const NodeImport& node) {
  const OnnxValue x = node.value();
  return {hard_sigmoid_of(node, x, node->number_or("alpha", 0.2f), node->number_or("beta", 0.5f))};
}

OnnxValues hard_swish(const NodeImport& node) {
  const OnnxValue x = node.value();
  return {node.binary("multiply", x, hard_sigmoid_of(node, x, 1.0f / 6, 0.5f))};
}

/// Bits of whole numbers without sign, moved: times or over a power of two.
OnnxValues bit_shift(const NodeImport& node) {
  const std::string_view direction = node->text_or("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") throw Error("expected direction LEFT or RIGHT");
  const OnnxValue& given = node.input(0);
  const std::optional<OnnxType> type = given.is_constant() ? given.constant->type : given.type;
  OnnxValues operands = operands_of(node, 2);
  align(node, operands);
  const OnnxValue power = node.binary("power", node.number(2), operands[1]);
  OnnxValue y = node.binary(direction == "LEFT" ? "multiply" : "quotient", operands[0], power);
  // What leaves the type is lost; wider types leave float32 before.
  const std::int64_t most = type ? range_of(*type).most : 0;
  if (direction == "LEFT" && most > 0 && most <= 0xffff)
    y = node.binary("modulo", y, static_cast<float>(most + 1));
  return {as_whole(y)};
}

/// (x - mean) / (deviation + 1e-9) over axes.
OnnxValues mean_variance(const NodeImport& node) {
  const OnnxValue x = node.value();
  Ints axes = node->integers_or("axes", {0, 2, 3});
  for (std::int64_t& axis : axes) {
    axis = stored_axis(x, axis);
    refuse_batch(x, axis, "a normalisation over");
  }
  std::ranges::sort(axes);
  const OnnxValue centred = node.binary("subtract", x, node.reduce("reduce_mean", x, axes));
  const OnnxValue deviation = node.unary(
      "sqrt", node.reduce("reduce_mean", node.binary("multiply", centred, centred), axes));
  return {node.binary("divide", centred, node.binary("add", deviation, 1e-9f))};
}

}  // namespace

const OnnxHandlers& onnx_pointwise_handlers() {
  static const OnnxHandlers kHandlers = [] {
    OnnxHandlers handlers = {
        {"BitShift", bit_shift},
        {"Div", divide},
        {"Gelu", gelu},
        {"HardSigmoid", hard_sigmoid},
        {"HardSwish", hard_swish},
        {"IsInf", is_infinite},
        {"IsNaN", is_nan},
        {"Max", extreme<true>},
        {"Mean", mean},
        {"MeanVarianceNormalization", mean_variance},
        {"Min", extreme<false>},
        {"Mod", modulo},
        {"Not", logical_not},
        {"PRelu", prelu},
        {"Sum", sum},
        {"Where", where},
        {"Xor", logical_xor},
    };
    // The first of a name counts.
    for (const Logic& row : kLogic) handlers.emplace_back(row.onnx, logic);
    for (const PointwiseRule& rule : pointwise_rules()) {
      if (!rule.onnx.empty()) handlers.emplace_back(rule.onnx, unary);
    }
    for (const BinaryRule& rule : binary_rules()) {
      if (!rule.onnx.empty()) handlers.emplace_back(rule.onnx, binary);
    }
    return handlers;
  }();
  return kHandlers;
}

}  // namespace numemu::net
