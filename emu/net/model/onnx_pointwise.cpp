// ONNX operators that work element by element, with broadcasting.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "emu/net/model/onnx_importer.hpp"
#include "emu/net/ops/abs.hpp"
#include "emu/net/ops/add.hpp"
#include "emu/net/ops/clip.hpp"
#include "emu/net/ops/constant.hpp"
#include "emu/net/ops/divide.hpp"
#include "emu/net/ops/erf.hpp"
#include "emu/net/ops/exp.hpp"
#include "emu/net/ops/leaky_relu.hpp"
#include "emu/net/ops/log.hpp"
#include "emu/net/ops/multiply.hpp"
#include "emu/net/ops/negate.hpp"
#include "emu/net/ops/power.hpp"
#include "emu/net/ops/reciprocal.hpp"
#include "emu/net/ops/relu.hpp"
#include "emu/net/ops/sigmoid.hpp"
#include "emu/net/ops/sqrt.hpp"
#include "emu/net/ops/subtract.hpp"
#include "emu/net/ops/tanh.hpp"
#include "emu/net/ops/where.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Values = std::vector<OnnxValue>;

template <class Function>
Values unary(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  return {importer.add(importer.node_name(node), std::make_unique<Function>(), {x}, x.image)};
}

/// Operands in one layout: that of images where every graph value has four axes (constants up to
/// four), else ONNX's own. Returns whether they are images.
bool align(OnnxImporter& importer, const OnnxNode& node, Values& operands) {
  bool any_image = false, possible = true;
  for (const OnnxValue& value : operands) {
    any_image = any_image || value.image;
    possible = possible && (value.is_constant() ? value.rank() <= 4 : value.rank() == 4);
  }
  const bool images = any_image && possible;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    OnnxValue& value = operands[i];
    if (value.is_constant()) {
      value = importer.as_graph(value, node.inputs[i], images);
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

/// Whole numbers travel as floats, whose quotients are not cut.
Values divide(OnnxImporter& importer, const OnnxNode& node) {
  Values operands = operands_of(importer, node, 2);
  const bool images = align(importer, node, operands);
  if (operands[0].integer && operands[1].integer)
    throw Error("the quotient of whole numbers is not supported");
  return {importer.add(importer.node_name(node), std::make_unique<Divide>(), operands, images)};
}

template <class Function>
Values binary(OnnxImporter& importer, const OnnxNode& node) {
  Values operands = operands_of(importer, node, 2);
  const bool images = align(importer, node, operands);
  return {importer.add(importer.node_name(node), std::make_unique<Function>(), operands, images)};
}

/// The sum of any number of inputs, from left to right.
Values sum(OnnxImporter& importer, const OnnxNode& node) {
  Values operands = operands_of(importer, node, node.inputs.size());
  const bool images = align(importer, node, operands);
  OnnxValue total = operands.at(0);
  for (std::size_t i = 1; i < operands.size(); ++i) {
    total = importer.add(importer.node_name(node), std::make_unique<Add>(), {total, operands[i]},
                         images);
  }
  return {total};
}

Values where(OnnxImporter& importer, const OnnxNode& node) {
  Values operands = operands_of(importer, node, 3);
  const bool images = align(importer, node, operands);
  return {importer.add(importer.node_name(node), std::make_unique<Where>(), operands, images)};
}

/// A bound of Clip: an input of one element from operator set 11 on, an attribute before.
float bound(OnnxImporter& importer, const OnnxNode& node, std::size_t index,
            std::string_view attribute, float otherwise) {
  if (!importer.has_input(node, index)) return number_or(node, attribute, otherwise);
  const Tensor value = importer.constant(node, index).tensor();
  if (value.size() != 1) throw Error(fmt::format("expected one number as {}", attribute));
  return value.data[0];
}

Values clip(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  constexpr float kMost = std::numeric_limits<float>::max();
  const float low = bound(importer, node, 1, "min", -kMost);
  const float high = bound(importer, node, 2, "max", kMost);
  return {importer.add(importer.node_name(node), std::make_unique<Clip>(low, high), {x}, x.image)};
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
  auto clip = kMaximum ? std::make_unique<Clip>(limit, kEverything)
                       : std::make_unique<Clip>(-kEverything, limit);
  return {importer.add(importer.node_name(node), std::move(clip), {*x}, x->image)};
}

Values leaky_relu(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  return {importer.add(importer.node_name(node),
                       std::make_unique<LeakyRelu>(number_or(node, "alpha", 0.01f)), {x}, x.image)};
}

/// max(0, min(1, slope x + 0.5)).
OnnxValue hard_sigmoid_of(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x,
                          float slope, float offset) {
  const OnnxValue scaled = importer.add(importer.node_name(node), std::make_unique<Multiply>(),
                                        {x, importer.number(slope)}, x.image);
  const OnnxValue moved = importer.add(importer.node_name(node), std::make_unique<Add>(),
                                       {scaled, importer.number(offset)}, x.image);
  return importer.add(importer.node_name(node), std::make_unique<Clip>(0.0f, 1.0f), {moved},
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
  return {importer.add(importer.node_name(node), std::make_unique<Multiply>(), {x, gate}, x.image)};
}

}  // namespace

const OnnxHandlers& onnx_pointwise_handlers() {
  static const OnnxHandlers kHandlers = {
      {"Abs", unary<Abs>},
      {"Add", binary<Add>},
      {"Clip", clip},
      {"Div", divide},
      {"Erf", unary<Erf>},
      {"Exp", unary<Exp>},
      {"HardSigmoid", hard_sigmoid},
      {"HardSwish", hard_swish},
      {"LeakyRelu", leaky_relu},
      {"Log", unary<Log>},
      {"Max", extreme<true>},
      {"Min", extreme<false>},
      {"Mul", binary<Multiply>},
      {"Neg", unary<Negate>},
      {"Pow", binary<Power>},
      {"Reciprocal", unary<Reciprocal>},
      {"Relu", unary<Relu>},
      {"Sigmoid", unary<Sigmoid>},
      {"Sqrt", unary<Sqrt>},
      {"Sub", binary<Subtract>},
      {"Sum", sum},
      {"Tanh", unary<Tanh>},
      {"Where", where},
  };
  return kHandlers;
}

}  // namespace numemu::net
