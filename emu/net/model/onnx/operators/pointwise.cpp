// ONNX operators that work element by element, with broadcasting.
#include "emu/net/ops/pointwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "emu/net/model/onnx/arithmetic.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"

namespace numemu::net {

bool align(OnnxImporter& importer, const OnnxNode& node, std::vector<OnnxValue>& operands) {
  std::size_t rank = 0;
  for (const OnnxValue& value : operands) rank = std::max(rank, value.image ? value.rank() : 0);
  bool images = rank > 0;
  for (const OnnxValue& value : operands)
    images = images && (value.is_constant() ? value.rank() <= rank : value.rank() == rank);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    OnnxValue& value = operands[i];
    if (value.is_constant()) {
      value = importer.as_graph(value, node.inputs[i], images ? rank : 0);
    } else {
      value = images ? importer.to_image(value) : importer.to_plain(value);
    }
  }
  return images;
}

namespace {

using Values = std::vector<OnnxValue>;

/// A number of an operator: an input of one element (the bounds of Clip from operator set 11 on),
/// or an attribute.
float number_of(OnnxImporter& importer, const OnnxNode& node, std::size_t index,
                const PointwiseParameter& parameter) {
  if (!importer.has_input(node, index)) return number_or(node, parameter.onnx, parameter.value);
  const Tensor value = importer.constant(node, index).tensor();
  if (value.size() != 1) throw Error(fmt::format("expected one number as {}", parameter.onnx));
  return value.data[0];
}

Values unary(OnnxImporter& importer, const OnnxNode& node) {
  const auto rules = pointwise_rules();
  const PointwiseRule& rule = *std::find_if(rules.begin(), rules.end(),
                                            [&](const auto& r) { return r.onnx == node.op_type; });
  const OnnxValue x = importer.value(node);
  PointwiseNumbers numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const PointwiseParameter& parameter = rule.parameters[i];
    if (parameter.name != nullptr) numbers[i] = number_of(importer, node, i + 1, parameter);
  }
  return {importer.add<Pointwise>(node, {x}, x.image, rule, numbers)};
}

/// The value under a shape with that many axes of one element behind its own.
OnnxValue with_axes_behind(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& value,
                           std::int64_t count) {
  if (count == 0) return value;
  if (!value.is_constant()) {
    const OnnxValue x = importer.to_plain(value);
    std::vector<Extent> target = x.extents();
    target.insert(target.end(), static_cast<std::size_t>(count), Extent{1});
    return importer.reshape_to(node, x, target);
  }
  OnnxValue out = value;
  auto constant = std::make_shared<OnnxConstant>(*value.constant);
  constant->dims.insert(constant->dims.end(), static_cast<std::size_t>(count), 1);
  out.constant = std::move(constant);
  return out;
}

Values operands_of(OnnxImporter& importer, const OnnxNode& node, std::size_t count) {
  if (count < 1) throw Error("expected an input");
  Values operands;
  for (std::size_t i = 0; i < count; ++i) operands.push_back(importer.input(node, i));
  if (importer.opset() < 7 && count == 2 && node.find("axis") != nullptr) {
    // Before operator set 7 the axes of the second operand begin at `axis` of the first.
    const std::int64_t axis = axis_in(integer_or(node, "axis", 0), operands[0].rank()),
                       behind = std::ssize(operands[0].extents()) - axis -
                                std::ssize(operands[1].extents());
    if (behind < 0) throw Error("expected a second operand with no more axes than there are");
    operands[1] = with_axes_behind(importer, node, operands[1], behind);
  }
  return operands;
}

bool is_whole(const OnnxValue& value) {
  return value.is_constant() ? value.constant->integer : value.integer;
}

/// A row of the table of two inputs, with its operands in that order or the other.
OnnxValue binary_of(OnnxImporter& importer, const OnnxNode& node, std::string_view kind,
                    bool swaps = false) {
  Values operands = operands_of(importer, node, 2);
  const bool images = align(importer, node, operands);
  if (swaps) std::swap(operands[0], operands[1]);
  return importer.add<Binary>(node, operands, images, kind);
}

Values binary(OnnxImporter& importer, const OnnxNode& node) {
  const auto rules = binary_rules();
  const BinaryRule& rule = *std::find_if(rules.begin(), rules.end(),
                                         [&](const auto& r) { return r.onnx == node.op_type; });
  return {binary_of(importer, node, rule.kind)};
}

/// Quotients of whole numbers are cut.
Values divide(OnnxImporter& importer, const OnnxNode& node) {
  const bool whole = is_whole(importer.input(node, 0)) && is_whole(importer.input(node, 1));
  return {binary_of(importer, node, whole ? "quotient" : "divide")};
}

Values modulo(OnnxImporter& importer, const OnnxNode& node) {
  return {binary_of(importer, node, integer_or(node, "fmod", 0) != 0 ? "remainder" : "modulo")};
}

/// Truth values are 0 and 1.
enum class Comparison { equal, greater, greater_or_equal, less, less_or_equal };

template <Comparison kComparison>
Values compare(OnnxImporter& importer, const OnnxNode& node) {
  constexpr bool kSwaps =
      kComparison == Comparison::less || kComparison == Comparison::less_or_equal;
  constexpr std::string_view kKind =
      kComparison == Comparison::equal                                        ? "equal"
      : kComparison == Comparison::greater || kComparison == Comparison::less ? "greater"
                                                                              : "greater_or_equal";
  OnnxValue y = binary_of(importer, node, kKind, kSwaps);
  y.integer = true;
  return {y};
}

Values logical_and(OnnxImporter& importer, const OnnxNode& node) {
  return {binary_of(importer, node, "minimum")};
}

Values logical_or(OnnxImporter& importer, const OnnxNode& node) {
  return {binary_of(importer, node, "maximum")};
}

OnnxValue equal_to(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x,
                   const OnnxValue& y) {
  OnnxValue out = importer.add<Binary>(node, {x, y}, x.image, "equal");
  out.integer = true;
  return out;
}

Values logical_not(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.value(node);
  return {equal_to(importer, node, x, importer.number(0))};
}

Values logical_xor(OnnxImporter& importer, const OnnxNode& node) {
  return {equal_to(importer, node, binary_of(importer, node, "equal"), importer.number(0))};
}

/// NaN alone differs from itself.
Values is_nan(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.value(node);
  return {equal_to(importer, node, equal_to(importer, node, x, x), importer.number(0))};
}

Values is_infinite(OnnxImporter& importer, const OnnxNode& node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  OnnxValue x = importer.value(node);
  const bool positive = integer_or(node, "detect_positive", 1) != 0,
             negative = integer_or(node, "detect_negative", 1) != 0;
  if (positive && negative) x = importer.add<Pointwise>(node, {x}, x.image, "abs");
  if (!positive && !negative) throw Error("expected to detect positive or negative infinities");
  return {equal_to(importer, node, x, importer.number(positive ? kInfinity : -kInfinity))};
}

/// Slopes are trained.
Values prelu(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue& slopes = importer.input(node, 1);
  const bool old = importer.opset() < 7 && slopes.rank() == 1;  // a slope for each channel
  if (!slopes.is_constant() && !old) return binary(importer, node);
  OnnxValue x = importer.value(node);
  if (old) {
    const bool shared = slopes.extents()[0].value == 1;
    const std::int64_t behind = shared ? 0 : std::ssize(x.extents()) - 2;
    if (behind < 0) throw Error("expected slopes of channels with an input of two axes or more");
    Values operands{importer.to_plain(x), with_axes_behind(importer, node, slopes, behind)};
    const bool images = align(importer, node, operands);
    return {importer.add<Binary>(node, operands, images, "prelu")};
  }
  if (importer.input(node, 1).rank() > 4) x = importer.to_plain(x);
  const OnnxValue slope = importer.trained(node, 1, x.image ? x.rank() : 0);
  return {importer.add<Binary>(node, {x, slope}, x.image, "prelu")};
}

Values gelu(OnnxImporter& importer, const OnnxNode& node) {
  const std::string_view kind = text_or(node, "approximate", "none");
  if (kind != "none" && kind != "tanh") throw Error("expected approximate 'none' or 'tanh'");
  const OnnxValue x = importer.value(node);
  return {importer.add<Pointwise>(node, {x}, x.image, kind == "tanh" ? "gelu_tanh" : "gelu")};
}

/// Any number of inputs, from left to right.
OnnxValue chain(OnnxImporter& importer, const OnnxNode& node, std::string_view kind) {
  Values operands = operands_of(importer, node, node.inputs.size());
  const bool images = align(importer, node, operands);
  OnnxValue total = operands.at(0);
  for (std::size_t i = 1; i < operands.size(); ++i) {
    total = importer.add<Binary>(node, {total, operands[i]}, images, kind);
  }
  return total;
}

Values sum(OnnxImporter& importer, const OnnxNode& node) { return {chain(importer, node, "add")}; }

Values mean(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue total = chain(importer, node, "add");
  const auto count = static_cast<float>(node.inputs.size());
  return {importer.add<Binary>(node, {total, importer.number(count)}, total.image, "divide")};
}

Values where(OnnxImporter& importer, const OnnxNode& node) {
  Values operands = operands_of(importer, node, 3);
  const bool images = align(importer, node, operands);
  OnnxValue y = importer.add<Where>(node, operands, images);
  y.integer = operands[1].integer && operands[2].integer;
  return {y};
}

/// Max and Min; of one value and numbers: a Clip with one bound.
template <bool kMaximum>
Values extreme(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue* x = nullptr;
  constexpr float kEverything = std::numeric_limits<float>::infinity();
  float limit = kMaximum ? -kEverything : kEverything;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxValue& value = importer.input(node, i);
    if (!value.is_constant() && x == nullptr) {
      x = &value;
      continue;
    }
    if (!value.is_constant() || value.constant->size() != 1)
      return {chain(importer, node, kMaximum ? "maximum" : "minimum")};
    const float number = importer.constant(node, i).tensor().data[0];
    limit = kMaximum ? std::max(limit, number) : std::min(limit, number);
  }
  if (x == nullptr) return {chain(importer, node, kMaximum ? "maximum" : "minimum")};
  auto clip = kMaximum ? std::make_unique<Pointwise>("clip", PointwiseNumbers{limit, kEverything})
                       : std::make_unique<Pointwise>("clip", PointwiseNumbers{-kEverything, limit});
  return {importer.add(importer.node_name(node), std::move(clip), {*x}, x->image)};
}

/// max(0, min(1, slope x + 0.5)).
OnnxValue hard_sigmoid_of(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x,
                          float slope, float offset) {
  const OnnxValue scaled =
      importer.add<Binary>(node, {x, importer.number(slope)}, x.image, "multiply");
  const OnnxValue moved =
      importer.add<Binary>(node, {scaled, importer.number(offset)}, x.image, "add");
  return importer.add<Pointwise>(node, {moved}, x.image, "clip", PointwiseNumbers{0.0f, 1.0f});
}

Values hard_sigmoid(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.value(node);
  return {hard_sigmoid_of(importer, node, x, number_or(node, "alpha", 0.2f),
                          number_or(node, "beta", 0.5f))};
}

Values hard_swish(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.value(node);
  const OnnxValue gate = hard_sigmoid_of(importer, node, x, 1.0f / 6, 0.5f);
  return {importer.add<Binary>(node, {x, gate}, x.image, "multiply")};
}

/// Bits of whole numbers without sign, moved: times or over a power of two.
Values bit_shift(OnnxImporter& importer, const OnnxNode& node) {
  const std::string_view direction = text_or(node, "direction", "");
  if (direction != "LEFT" && direction != "RIGHT") throw Error("expected direction LEFT or RIGHT");
  const OnnxValue& given = importer.input(node, 0);
  const std::optional<OnnxType> type = given.is_constant() ? given.constant->type : given.type;
  Values operands = operands_of(importer, node, 2);
  const OnnxArithmetic make(importer, node, align(importer, node, operands));
  const OnnxValue power = make.binary("power", importer.number(2), operands[1]);
  OnnxValue y = make.binary(direction == "LEFT" ? "multiply" : "quotient", operands[0], power);
  // What leaves the type is lost; wider types leave float32 before.
  const std::int64_t most = type ? range_of(*type).most : 0;
  if (direction == "LEFT" && most > 0 && most <= 0xffff)
    y = make.binary("modulo", y, static_cast<float>(most + 1));
  y.integer = true;
  return {y};
}

/// (x - mean) / (deviation + 1e-9) over axes.
Values mean_variance(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.value(node);
  std::vector<std::int64_t> axes = integers_or(node, "axes", {0, 2, 3});
  for (std::int64_t& axis : axes) {
    axis = stored_axis(x, axis);
    refuse_batch(x, axis, "a normalisation over");
  }
  std::ranges::sort(axes);
  const OnnxArithmetic make(importer, node, x.image);
  const OnnxValue centred = make.binary("subtract", x, make.reduce("reduce_mean", x, axes));
  const OnnxValue deviation = make.unary(
      "sqrt", make.reduce("reduce_mean", make.binary("multiply", centred, centred), axes));
  return {make.binary("divide", centred, make.binary("add", deviation, 1e-9f))};
}

}  // namespace

const OnnxHandlers& onnx_pointwise_handlers() {
  static const OnnxHandlers kHandlers = [] {
    OnnxHandlers handlers = {
        {"And", logical_and},
        {"BitShift", bit_shift},
        {"Div", divide},
        {"Equal", compare<Comparison::equal>},
        {"Gelu", gelu},
        {"Greater", compare<Comparison::greater>},
        {"GreaterOrEqual", compare<Comparison::greater_or_equal>},
        {"HardSigmoid", hard_sigmoid},
        {"HardSwish", hard_swish},
        {"IsInf", is_infinite},
        {"IsNaN", is_nan},
        {"Less", compare<Comparison::less>},
        {"LessOrEqual", compare<Comparison::less_or_equal>},
        {"Max", extreme<true>},
        {"Mean", mean},
        {"MeanVarianceNormalization", mean_variance},
        {"Min", extreme<false>},
        {"Mod", modulo},
        {"Not", logical_not},
        {"Or", logical_or},
        {"PRelu", prelu},
        {"Sum", sum},
        {"Where", where},
        {"Xor", logical_xor},
    };
    // The first of a name counts.
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
