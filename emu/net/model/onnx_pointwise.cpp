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

/// A constant of up to four axes in ONNX order, for images [n, h, w, c].
OnnxValue channels_last(const OnnxValue& value) {
  const OnnxConstant& from = *value.constant;
  Shape dims = from.dims;
  dims.insert(dims.begin(), 4 - dims.size(), 1);
  const std::int64_t c = dims[1], space = dims[2] * dims[3];
  auto turned = std::make_shared<OnnxConstant>(
      OnnxConstant{{dims[0], dims[2], dims[3], c}, from.integer, {}});
  turned->elements.resize(from.elements.size());
  for (std::int64_t n = 0; n < dims[0]; ++n) {
    for (std::int64_t i = 0; i < c; ++i) {
      for (std::int64_t s = 0; s < space; ++s)
        turned->elements[(n * space + s) * c + i] = from.elements[(n * c + i) * space + s];
    }
  }
  OnnxValue out;
  out.constant = std::move(turned);
  return out;
}

bool single(const OnnxValue& value) {
  return value.is_constant() ? value.constant->elements.size() == 1 : value.rank() == 0;
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
      if (images && !single(value)) value = channels_last(value);
      value = importer.as_graph(value, node.inputs[i]);
    } else {
      value = images ? importer.to_image(value) : importer.to_plain(value);
    }
  }
  return images;
}

Values operands_of(OnnxImporter& importer, const OnnxNode& node, std::size_t count) {
  Values operands;
  for (std::size_t i = 0; i < count; ++i) operands.push_back(importer.input(node, i));
  return operands;
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
float bound(const OnnxImporter& importer, const OnnxNode& node, std::size_t index,
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

Values leaky_relu(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  return {importer.add(importer.node_name(node),
                       std::make_unique<LeakyRelu>(number_or(node, "alpha", 0.01f)), {x}, x.image)};
}

/// max(0, min(1, slope x + 0.5)).
OnnxValue hard_sigmoid_of(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x,
                          float slope, float offset) {
  const auto constant = [&](float value) {
    OnnxValue out;
    out.constant = std::make_shared<OnnxConstant>(OnnxConstant{{}, false, {{value, {}}}});
    return importer.as_graph(out, "constant");
  };
  const OnnxValue scaled = importer.add(importer.node_name(node), std::make_unique<Multiply>(),
                                        {x, constant(slope)}, x.image);
  const OnnxValue moved = importer.add(importer.node_name(node), std::make_unique<Add>(),
                                       {scaled, constant(offset)}, x.image);
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
      {"Div", binary<Divide>},
      {"Erf", unary<Erf>},
      {"Exp", unary<Exp>},
      {"HardSigmoid", hard_sigmoid},
      {"HardSwish", hard_swish},
      {"LeakyRelu", leaky_relu},
      {"Log", unary<Log>},
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
