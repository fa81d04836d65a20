// ONNX operators that work element by element, with broadcasting.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "emu/net/model/onnx_importer.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/constant.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/where.hpp"
#include "formats/error.hpp"

namespace numemu::net {
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
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  PointwiseNumbers numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const PointwiseParameter& parameter = rule.parameters[i];
    if (parameter.name != nullptr) numbers[i] = number_of(importer, node, i + 1, parameter);
  }
  return {importer.add(importer.node_name(node), std::make_unique<Pointwise>(rule, numbers), {x},
                       x.image)};
}

/// Operands in one layout: that of images where every graph value has as many axes as these
/// (constants at most), else ONNX's own. Returns whether they are images.
bool align(OnnxImporter& importer, const OnnxNode& node, Values& operands) {
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

Values operands_of(OnnxImporter& importer, const OnnxNode& node, std::size_t count) {
  if (count < 1) throw Error("expected an input");
  Values operands;
  for (std::size_t i = 0; i < count; ++i) operands.push_back(importer.input(node, i));
  return operands;
}

Values binary(OnnxImporter& importer, const OnnxNode& node) {
  const auto rules = binary_rules();
  const BinaryRule& rule = *std::find_if(rules.begin(), rules.end(),
                                         [&](const auto& r) { return r.onnx == node.op_type; });
  Values operands = operands_of(importer, node, 2);
  const bool images = align(importer, node, operands);
  // Whole numbers travel as floats, whose quotients are not cut.
  if (rule.kind == "divide" && operands[0].integer && operands[1].integer)
    throw Error("the quotient of whole numbers is not supported");
  return {importer.add(importer.node_name(node), std::make_unique<Binary>(rule), operands, images)};
}

/// The sum of any number of inputs, from left to right.
Values sum(OnnxImporter& importer, const OnnxNode& node) {
  Values operands = operands_of(importer, node, node.inputs.size());
  const bool images = align(importer, node, operands);
  OnnxValue total = operands.at(0);
  for (std::size_t i = 1; i < operands.size(); ++i) {
    total = importer.add(importer.node_name(node), std::make_unique<Binary>("add"),
                         {total, operands[i]}, images);
  }
  return {total};
}

Values where(OnnxImporter& importer, const OnnxNode& node) {
  Values operands = operands_of(importer, node, 3);
  const bool images = align(importer, node, operands);
  return {importer.add(importer.node_name(node), std::make_unique<Where>(), operands, images)};
}

/// Max and Min of one value and numbers: a Clip with one bound.
template <bool kMaximum>
Values extreme(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue* x = nullptr;
  constexpr float kEverything = std::numeric_limits<float>::infinity();
  float limit = kMaximum ? -kEverything : kEverything;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxValue& value = importer.input(node, i);
    if (!value.is_constant()) {
      if (x != nullptr) throw Error("expected one value and numbers");
      x = &value;
      continue;
    }
    const Tensor number = importer.constant(node, i).tensor();
    if (number.size() != 1) throw Error("expected one value and numbers");
    limit = kMaximum ? std::max(limit, number.data[0]) : std::min(limit, number.data[0]);
  }
  if (x == nullptr) throw Error("expected one value and numbers");
  auto clip = kMaximum ? std::make_unique<Pointwise>("clip", PointwiseNumbers{limit, kEverything})
                       : std::make_unique<Pointwise>("clip", PointwiseNumbers{-kEverything, limit});
  return {importer.add(importer.node_name(node), std::move(clip), {*x}, x->image)};
}

/// max(0, min(1, slope x + 0.5)).
OnnxValue hard_sigmoid_of(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x,
                          float slope, float offset) {
  const OnnxValue scaled =
      importer.add(importer.node_name(node), std::make_unique<Binary>("multiply"),
                   {x, importer.number(slope)}, x.image);
  const OnnxValue moved = importer.add(importer.node_name(node), std::make_unique<Binary>("add"),
                                       {scaled, importer.number(offset)}, x.image);
  return importer.add(importer.node_name(node),
                      std::make_unique<Pointwise>("clip", PointwiseNumbers{0.0f, 1.0f}), {moved},
                      x.image);
}

Values hard_sigmoid(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  return {hard_sigmoid_of(importer, node, x, number_or(node, "alpha", 0.2f),
                          number_or(node, "beta", 0.5f))};
}

Values hard_swish(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  const OnnxValue gate = hard_sigmoid_of(importer, node, x, 1.0f / 6, 0.5f);
  return {importer.add(importer.node_name(node), std::make_unique<Binary>("multiply"), {x, gate},
                       x.image)};
}

}  // namespace

const OnnxHandlers& onnx_pointwise_handlers() {
  static const OnnxHandlers kHandlers = [] {
    OnnxHandlers handlers = {
        {"HardSigmoid", hard_sigmoid},
        {"HardSwish", hard_swish},
        {"Max", extreme<true>},
        {"Min", extreme<false>},
        {"Sum", sum},
        {"Where", where},
    };
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
