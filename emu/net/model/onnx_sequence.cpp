#include "emu/net/model/onnx_sequence.hpp"

#include <limits>
#include <utility>

#include "emu/net/ops/causal_mask.hpp"
#include "emu/net/ops/embedding.hpp"
#include "emu/net/ops/layer_norm.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/position_embedding.hpp"
#include "emu/net/ops/softmax.hpp"

namespace numemu::net {
namespace {

using Longs = std::vector<std::int64_t>;
using Inputs = std::vector<OnnxOperandName>;

constexpr std::int64_t kLeast = 13, kLayerNorm = 17, kGelu = 20;  // operator sets

std::string parameter(OnnxWriter& writer, const Node& node, std::size_t i) {
  const Parameter& p = std::as_const(*node.op).parameters()[i];
  writer.constant(p.name, p.value.shape, {p.value.data.begin(), p.value.data.end()});
  return p.name;
}

/// [b, t, heads d] as [b, heads, t, d], or with `turned` as [b, heads, d, t].
std::string split(OnnxWriter& writer, const std::string& name, const OnnxOperandName& x,
                  std::int64_t heads, bool turned) {
  const std::string shape = name + ".shape", parts = name + ".parts";
  writer.constant(shape, Longs{0, 0, heads, x.shape.back() / heads});
  writer.node("Reshape", parts, {x.name, shape}, parts);
  writer.node("Transpose", name, {parts}, name,
              {{"perm", turned ? Longs{0, 2, 3, 1} : Longs{0, 2, 1, 3}}});
  return name;
}

void matmul(OnnxWriter& writer, const Node& node, const Inputs& inputs,
            const OnnxQuantized& quantized) {
  const MatMulOptions& o = dynamic_cast<const MatMul&>(*node.op).options();
  const bool scores = o.heads > 0 && o.transpose_b, gathers = o.heads > 0 && !o.transpose_b;
  std::string a = inputs[0].name, b = inputs[1].name;
  if (scores) a = split(writer, node.name + ".a", inputs[0], o.heads, false);
  if (o.heads > 0) {
    b = split(writer, node.name + ".b", inputs[1], o.heads, scores);
  } else if (o.transpose_b) {
    Longs order;
    const auto rank = static_cast<std::int64_t>(inputs[1].shape.size());
    for (std::int64_t i = 0; i < rank; ++i) order.push_back(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    b = node.name + ".b";
    writer.node("Transpose", b, {inputs[1].name}, b, {{"perm", order}});
  }
  a = quantized(0, a);
  b = quantized(1, b);
  const bool factor = o.alpha != 1;
  const std::string product = gathers || factor ? node.name + ".product" : node.name,
                    merged = factor ? node.name + ".merged" : node.name;
  writer.node("MatMul", product, {a, b}, product);
  std::string last = product;
  if (gathers) {
    const std::string turned = node.name + ".turned", shape = node.name + ".shape";
    writer.node("Transpose", turned, {product}, turned, {{"perm", Longs{0, 2, 1, 3}}});
    writer.constant(shape, Longs{0, 0, inputs[1].shape.back()});
    writer.node("Reshape", merged, {turned, shape}, merged);
    last = merged;
  }
  if (factor) {
    writer.constant(node.name + ".alpha", {}, std::vector<float>{o.alpha});
    writer.node("Mul", node.name, {last, node.name + ".alpha"}, node.name);
  }
}

void causal_mask(OnnxWriter& writer, const Node& node, const Inputs& inputs) {
  const std::int64_t length = inputs[0].shape.back();
  std::vector<float> mask(static_cast<std::size_t>(length * length));
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t j = i + 1; j < length; ++j)
      mask[static_cast<std::size_t>(i * length + j)] = -std::numeric_limits<float>::infinity();
  }
  writer.constant(node.name + ".mask", {length, length}, mask);
  writer.node("Add", node.name, {inputs[0].name, node.name + ".mask"}, node.name);
}

}  // namespace

bool is_sequence_operator(const Op& op) {
  return dynamic_cast<const Embedding*>(&op) != nullptr ||
         dynamic_cast<const PositionEmbedding*>(&op) != nullptr ||
         dynamic_cast<const LayerNorm*>(&op) != nullptr ||
         dynamic_cast<const MatMul*>(&op) != nullptr ||
         dynamic_cast<const CausalMask*>(&op) != nullptr ||
         dynamic_cast<const Softmax*>(&op) != nullptr || op.kind() == "gelu";
}

std::int64_t add_sequence_node(OnnxWriter& writer, const Node& node, const Inputs& inputs,
                               const OnnxQuantized& quantized) {
  const std::string& x = inputs[0].name;
  if (dynamic_cast<const Embedding*>(node.op.get()) != nullptr) {
    std::string rows = x;
    if (!inputs[0].whole) {
      rows = node.name + ".rows";
      writer.node("Cast", rows, {x}, rows, {{"to", static_cast<std::int64_t>(OnnxType::int64)}});
    }
    writer.node("Gather", node.name, {parameter(writer, node, 0), rows}, node.name,
                {{"axis", std::int64_t{0}}});
  } else if (dynamic_cast<const PositionEmbedding*>(node.op.get()) != nullptr) {
    writer.node("Add", node.name, {x, parameter(writer, node, 0)}, node.name);
  } else if (const auto* norm = dynamic_cast<const LayerNorm*>(node.op.get())) {
    const std::string weight = parameter(writer, node, 0), bias = parameter(writer, node, 1);
    writer.node("LayerNormalization", node.name, {x, weight, bias}, node.name,
                {{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(norm->epsilon())}});
    return kLayerNorm;
  } else if (node.op->kind() == "gelu") {
    writer.node("Gelu", node.name, {x}, node.name);
    return kGelu;
  } else if (dynamic_cast<const MatMul*>(node.op.get()) != nullptr) {
    matmul(writer, node, inputs, quantized);
  } else if (dynamic_cast<const CausalMask*>(node.op.get()) != nullptr) {
    causal_mask(writer, node, inputs);
  } else {
    writer.node("Softmax", node.name, {x}, node.name,
                {{"axis", dynamic_cast<const Softmax&>(*node.op).axis()}});
  }
  return kLeast;
}

}  // namespace numemu::net
