// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/model/onnx/operand_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "formats/error.hpp"

namespace numemu::net {
namespace {

std::string zero_bytes(OnnxType type, std::int32_t zero) {
  std::string out(1, static_cast<char>(zero & 255));
  if (type == OnnxType::int4 || type == OnnxType::uint4) out[0] = static_cast<char>(zero & 15);
  if (type == OnnxType::int16 || type == OnnxType::uint16)
    out += static_cast<char>(zero >> 8 & 255);
  return out;
}

}  // namespace

OnnxType OperandWriter::stored_as(const OnnxOperand& operand, const std::string& name) {
  const std::optional<OnnxType> type = storage_type(*operand.format);
  if (!type) throw Error(fmt::format("{}: no ONNX type stores {}", name, operand.format->name));
  const bool small = *type == OnnxType::int4 || *type == OnnxType::uint4 ||
                     *type == OnnxType::int16 || *type == OnnxType::uint16;
  if (small || !float8_format(*type).empty())
    opset_ = std::max<std::int64_t>(opset_, small ? 21 : 19);
  return *type;
}

/// A Clip where the format's integers are fewer than the type's: at half a step beyond the last
/// would do, at the last it is plain. `to` starts the names.
std::string OperandWriter::hold(const OnnxOperand& operand, OnnxType type, const std::string& layer,
                                const std::string& to, const std::string& x) {
  const Format& format = *operand.format;
  if (format.kind != Kind::integer) {
    if (format.name != float8_format(type))
      throw Error(
          fmt::format("{}: activation: QuantizeLinear rounds to no {}", layer, format.name));
    return x;
  }
  const IntegerRange range = range_of(type);
  const auto most = static_cast<std::int64_t>(largest_value(format));
  const std::int64_t least = !format.is_signed ? 0 : operand.shifted ? -most - 1 : -most;
  if (least == range.least && most == range.most) return x;
  const auto bound = [&](std::int64_t code) {
    return static_cast<float>(code - operand.zero_point) * operand.scales[0];
  };
  const std::string low = to + "_low", high = to + "_high", clipped = to + "_held";
  writer_->constant(low, {}, std::vector<float>{bound(least)});
  writer_->constant(high, {}, std::vector<float>{bound(most)});
  writer_->node("Clip", clipped, {x, low, high}, clipped);
  return clipped;
}

std::string OperandWriter::half(const Format& format, const std::string& name,
                                const std::string& x) {
  const auto most = static_cast<float>(largest_value(format));
  const std::string low = name + "_low", high = name + "_high", held = name + "_held",
                    codes = name + "_codes";
  writer_->constant(low, {}, std::vector<float>{-most});
  writer_->constant(high, {}, std::vector<float>{most});
  writer_->node("Clip", held, {x, low, high}, held);
  const auto type =
      static_cast<std::int64_t>(format.name == "bfloat16" ? OnnxType::bfloat16 : OnnxType::float16);
  writer_->node("Cast", codes, {held}, codes, {{"to", type}});
  writer_->node("Cast", name, {codes}, name,
                {{"to", static_cast<std::int64_t>(OnnxType::float32)}});
  return name;
}

std::string OperandWriter::dynamic(const OnnxOperand& how, const std::string& layer,
                                   const std::string& name, const std::string& x, bool whole) {
  const Format& format = *how.format;
  const OnnxType type = stored_as(how, layer + ": activation");
  if (format.kind != Kind::integer && format.name != float8_format(type))
    throw Error(
        fmt::format("{}: activation: no operator of ONNX rounds to {}", layer, format.name));
  const auto most = static_cast<float>(largest_value(format));
  const auto of = [&](const char* part) { return name + part; };
  const auto constant = [&](const char* part, float value) {
    writer_->constant(of(part), {}, std::vector<float>{value});
    return of(part);
  };
  const auto node = [&](const char* op, const char* part, const std::vector<std::string>& inputs,
                        const std::vector<OnnxNodeAttribute>& attributes = {}) {
    writer_->node(op, of(part), inputs, of(part), attributes);
    return of(part);
  };
  // [rows, columns]: what shares a scale is a row.
  const std::int64_t rows = how.scale_of == OnnxScaleOf::row ? -1 : whole ? 0 : 1;
  const std::string flat = node("Flatten", "_flat", {x}, {{"axis", rows}}),
                    size = node("Abs", "_size", {flat});
  constexpr std::int64_t kAxesAreInputs = 18;  // the operator set, of ReduceMax
  opset_ = std::max(opset_, kAxesAreInputs);
  writer_->constant(of("_axes"), std::vector<std::int64_t>{1});
  const std::string largest = node("ReduceMax", "_largest", {size, of("_axes")});
  const std::string quotient = node("Div", "_quotient", {largest, constant("_most", most)}),
                    // Of zeros: any scale will do.
      scale = node("Max", "_scale", {quotient, constant("_least", 0x1p-126f)}),
                    scaled = node("Div", "_scaled", {flat, scale});
  std::string codes;
  if (format.kind == Kind::integer) {
    codes = node("Clip", "_codes",
                 {node("Round", "_rounded", {scaled}), constant("_low", -most), of("_most")});
  } else {
    const std::string held = node("Clip", "_held", {scaled, constant("_low", -most), of("_most")});
    const std::string coded =
        node("Cast", "_coded", {held}, {{"to", static_cast<std::int64_t>(type)}});
    codes = node("Cast", "_codes", {coded}, {{"to", static_cast<std::int64_t>(OnnxType::float32)}});
  }
  const std::string values = node("Mul", "_values", {codes, scale}),
                    shape = node("Shape", "_shape", {x});
  writer_->node("Reshape", name, {values, shape}, name);
  return name;
}

std::string OperandWriter::activation(const OnnxOperand& how, const std::string& layer,
                                      const std::string& name, const std::string& x, bool whole) {
  if (how.scale_of != OnnxScaleOf::file) return dynamic(how, layer, name, x, whole);
  if (how.scales.empty()) return half(*how.format, name, x);
  const OnnxType type = stored_as(how, layer + ": activation");
  const std::string scale = name + "_scale", zero = name + "_zero_point", codes = name + "_codes";
  writer_->constant(scale, {}, how.scales);
  const std::string held = hold(how, type, layer, name, x);
  writer_->constant(zero, type, {}, zero_bytes(type, how.zero_point));
  writer_->node("QuantizeLinear", codes, {held, scale, zero}, codes);
  writer_->node("DequantizeLinear", name, {codes, scale, zero}, name);
  return name;
}

void OperandWriter::weight(const OnnxOperand& how, const std::string& layer,
                           const std::string& name, const Shape& dims, std::int64_t axis,
                           const std::vector<std::uint16_t>& in_order) {
  const OnnxType type = stored_as(how, layer + ": weight");
  const bool one = how.scales.size() == 1;
  if (std::ssize(in_order) != element_count(dims) ||
      (!one && std::ssize(how.scales) != dims[static_cast<std::size_t>(axis)]))
    throw Error(layer + ": expected codes and scales of the whole weight");
  const std::string codes = name + "_codes", scale = name + "_scale";
  writer_->constant(codes, type, dims, stored_codes(*how.format, type, in_order));
  writer_->constant(scale, one ? Shape{} : Shape{std::ssize(how.scales)}, how.scales);
  std::vector<OnnxNodeAttribute> attributes;
  if (!one) attributes.push_back({"axis", axis});
  writer_->node("DequantizeLinear", name, {codes, scale}, name, attributes);
}

void OperandWriter::blocks(const OnnxOperand& how, const std::string& layer,
                           const std::string& name, const WeightOrder& order) {
  constexpr std::int64_t kBlocks = 21;  // the operator set that has block_size
  const OnnxBlocks& blocks = *how.blocks;
  if (order.depth_axis < 0 || order.dims[static_cast<std::size_t>(order.depth_axis)] != blocks.line)
    throw Error(layer + ": blocks across axes of the file's weight cannot be exported");
  std::vector<float> scales;
  std::vector<std::uint16_t> zeros;
  for (const std::int64_t element : order.block_starts(blocks.size)) {
    const auto block = static_cast<std::size_t>(blocks.block_of(element));
    scales.push_back(how.scales[block]);
    if (!blocks.zero_points.empty())
      zeros.push_back(static_cast<std::uint16_t>(blocks.zero_points[block]));
  }
  const OnnxType type = stored_as(how, layer + ": weight");
  opset_ = std::max(opset_, kBlocks);
  const Shape scale_dims = order.block_dims(blocks.size);
  const std::string codes = name + "_codes", scale = name + "_scale", zero = name + "_zero_point";
  writer_->constant(codes, type, order.dims,
                    stored_codes(*how.format, type, in_order(order, how.codes)));
  writer_->constant(scale, scale_dims, scales);
  std::vector<std::string> inputs = {codes, scale};
  if (!zeros.empty()) {
    writer_->constant(zero, type, scale_dims, stored_codes(*how.format, type, zeros));
    inputs.push_back(zero);
  }
  writer_->node("DequantizeLinear", name, inputs, name,
                {{"axis", order.depth_axis}, {"block_size", blocks.size}});
}

}  // namespace numemu::net
