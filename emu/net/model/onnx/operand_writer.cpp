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
/// would do, at the last it is plain.
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
  return clip(to, x, bound(least), bound(most));
}

std::string OperandWriter::clip(const std::string& to, const std::string& x, float low,
                                float high) {
  return writer_->value(
      "Clip", to + "_held",
      {x, writer_->constant(to + "_low", low), writer_->constant(to + "_high", high)});
}

std::string OperandWriter::cast(const std::string& name, const std::string& x, OnnxType to) {
  return writer_->value("Cast", name, {x}, {{"to", static_cast<std::int64_t>(to)}});
}

std::string OperandWriter::half(const Format& format, const std::string& name,
                                const std::string& x) {
  const auto most = static_cast<float>(largest_value(format));
  const OnnxType type = format.name == "bfloat16" ? OnnxType::bfloat16 : OnnxType::float16;
  return cast(name, cast(name + "_codes", clip(name, x, -most, most), type), OnnxType::float32);
}

OperandWriter::Codes OperandWriter::computed(const OnnxOperand& how, const std::string& name,
                                             const std::string& x,
                                             const std::vector<std::int64_t>& axes) {
  const Format& format = *how.format;
  const auto most = static_cast<float>(largest_value(format));
  const auto of = [&](const char* part) { return name + part; };
  const auto constant = [&](const char* part, float value) {
    return writer_->constant(of(part), value);
  };
  const auto node = [&](const char* op, const char* part, const std::vector<std::string>& inputs) {
    return writer_->value(op, of(part), inputs);
  };
  constexpr std::int64_t kAxesAreInputs = 18;  // the operator set, of ReduceMax
  opset_ = std::max(opset_, kAxesAreInputs);
  std::vector<std::string> reduced = {node("Abs", "_size", {x})};
  if (!axes.empty()) reduced.push_back(writer_->constant(of("_axes"), axes));
  const std::string largest = node("ReduceMax", "_largest", reduced),
                    quotient = node("Div", "_quotient", {largest, constant("_most", most)}),
                    // Of zeros: any scale will do.
      scale = node("Max", "_scale", {quotient, constant("_least", 0x1p-126f)}),
                    scaled = node("Div", "_scaled", {x, scale});
  const float least = format.is_signed ? -most : 0;
  if (format.kind == Kind::integer)
    return {node("Clip", "_codes",
                 {node("Round", "_rounded", {scaled}), constant("_low", least), of("_most")}),
            scale};
  const std::string held = node("Clip", "_held", {scaled, constant("_low", least), of("_most")});
  return {cast(of("_codes"), cast(of("_coded"), held, *storage_type(format)), OnnxType::float32),
          scale};
}

std::string OperandWriter::dynamic(const OnnxOperand& how, const std::string& layer,
                                   const std::string& name, const std::string& x, bool whole,
                                   std::size_t samples) {
  const Format& format = *how.format;
  const OnnxType type = stored_as(how, layer + ": activation");
  if (format.kind != Kind::integer && format.name != float8_format(type))
    throw Error(
        fmt::format("{}: activation: no operator of ONNX rounds to {}", layer, format.name));
  if (samples == 1 && !whole && how.scale_of == OnnxScaleOf::sample) {
    const Codes found = computed(how, name, x, {0, 2});
    return writer_->value("Mul", name, {found.codes, found.scale});
  }
  // [rows, columns]: what shares a scale is a row.
  const std::int64_t rows = how.scale_of == OnnxScaleOf::row ? -1 : whole ? 0 : 1;
  const std::string flat = writer_->value("Flatten", name + "_flat", {x}, {{"axis", rows}});
  const Codes found = computed(how, name, flat, {1});
  return writer_->value("Reshape", name,
                        {writer_->value("Mul", name + "_values", {found.codes, found.scale}),
                         writer_->value("Shape", name + "_shape", {x})});
}

std::string OperandWriter::activation(const OnnxOperand& how, const std::string& layer,
                                      const std::string& name, const std::string& x, bool whole,
                                      std::size_t samples) {
  if (how.scale_of != OnnxScaleOf::file) return dynamic(how, layer, name, x, whole, samples);
  if (how.scales.empty()) return half(*how.format, name, x);
  const OnnxType type = stored_as(how, layer + ": activation");
  const std::string scale = writer_->constant(name + "_scale", {}, how.scales),
                    held = hold(how, type, layer, name, x),
                    zero = writer_->constant(name + "_zero_point", type, {},
                                             zero_bytes(type, how.zero_point)),
                    codes = writer_->value("QuantizeLinear", name + "_codes", {held, scale, zero});
  return writer_->value("DequantizeLinear", name, {codes, scale, zero});
}

void OperandWriter::weight(const OnnxOperand& how, const std::string& layer,
                           const std::string& name, const Shape& dims, std::int64_t axis,
                           const std::vector<std::uint16_t>& in_order) {
  const OnnxType type = stored_as(how, layer + ": weight");
  const bool one = how.scales.size() == 1;
  if (std::ssize(in_order) != element_count(dims) ||
      (!one && std::ssize(how.scales) != dims[static_cast<std::size_t>(axis)]))
    throw Error(layer + ": expected codes and scales of the whole weight");
  const std::string codes = writer_->constant(name + "_codes", type, dims,
                                              stored_codes(*how.format, type, in_order)),
                    scale = writer_->constant(
                        name + "_scale", one ? Shape{} : Shape{std::ssize(how.scales)}, how.scales);
  std::vector<OnnxNodeAttribute> attributes;
  if (!one) attributes.push_back({"axis", axis});
  writer_->value("DequantizeLinear", name, {codes, scale}, attributes);
}

void OperandWriter::blocks(const OnnxOperand& how, const std::string& layer,
                           const std::string& name, const WeightOrder& order) {
  constexpr std::int64_t kBlocks = 21;  // the operator set that has block_size
  const OnnxBlocks& blocks = *how.blocks;
  if (order.depth_axis < 0 ||
      order.dims[static_cast<std::size_t>(order.depth_axis)] != blocks.line) {
    if (order.axes.empty())
      throw Error(layer + ": blocks across axes of the file's weight cannot be exported");
    // Lines across axes are those of a matrix, whose elements then take the order of the file.
    const std::string lines = name + "_lines";
    this->blocks(how, layer, lines,
                 order_of_matrix(std::ssize(how.codes) / blocks.line, blocks.line));
    std::vector<std::int64_t> dims(order.axes.size());
    for (std::size_t i = 0; i < dims.size(); ++i)
      dims[static_cast<std::size_t>(order.axes[i])] = order.dims[i];
    const std::string own =
        writer_->value("Reshape", name + "_own", {lines, writer_->constant(name + "_shape", dims)});
    writer_->value("Transpose", name, {own}, {{"perm", order.axes}});
    return;
  }
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
  std::vector<std::string> inputs = {
      writer_->constant(name + "_codes", type, order.dims,
                        stored_codes(*how.format, type, in_order(order, how.codes))),
      writer_->constant(name + "_scale", scale_dims, scales)};
  if (!zeros.empty())
    inputs.push_back(writer_->constant(name + "_zero_point", type, scale_dims,
                                       stored_codes(*how.format, type, zeros)));
  writer_->value("DequantizeLinear", name, inputs,
                 {{"axis", order.depth_axis}, {"block_size", blocks.size}});
}

void OnnxProduct::write(OnnxWriter& writer, const std::string& bias,
                        const std::string& result) const {
  const auto of = [&](const char* part) { return name + part; };
  const std::string product = bias.empty() ? result : of("_product");
  const std::string sums = factor.empty() ? product : of("_sums");
  writer.node(op, sums, inputs, sums, attributes);
  if (!factor.empty()) {
    writer.node("Cast", of("_numbers"), {sums}, of("_numbers"),
                {{"to", static_cast<std::int64_t>(OnnxType::float32)}});
    writer.value("Mul", product, {of("_numbers"), factor});
  }
  if (bias.empty()) return;
  std::string added = bias;
  if (!bias_shape.empty())
    added = writer.value("Reshape", of("_bias"),
                         {bias, writer.constant(of("_bias_shape"), bias_shape)});
  writer.value("Add", result, {product, added});
}

bool in_n_bits(const OnnxOperand& weight, const Shape& shape) {
  if (!weight.blocks || weight.format->kind != Kind::integer || weight.format->bits > 4)
    return false;
  const std::int64_t size = weight.blocks->size;
  return shape.size() == 2 && weight.blocks->line == shape[1] && size >= 16 &&
         (size & (size - 1)) == 0;
}

bool in_integers(const OnnxLayer& layer) {
  if (!layer.weight || !layer.activation || layer.weight->blocks ||
      layer.activation->scale_of == OnnxScaleOf::file)
    return false;
  const auto narrow = [](const Format& format) {
    return format.kind == Kind::integer && format.bits <= 8;
  };
  return narrow(*layer.weight->format) && narrow(*layer.activation->format);
}

OnnxProduct OperandWriter::n_bits(const OnnxOperand& how, const std::string& name,
                                  const Shape& shape) {
  constexpr std::int64_t kBits = 4;
  constexpr std::int32_t kHalf = 8;
  const OnnxBlocks& blocks = *how.blocks;
  const std::int64_t outputs = shape[0], depth = shape[1], per_line = blocks.per_line();
  const std::int32_t shift = how.format->is_signed ? kHalf : 0;
  const auto put = [](std::string& bytes, std::int64_t i, std::int32_t code) {
    char& byte = bytes[static_cast<std::size_t>(i / 2)];
    byte = static_cast<char>(byte | (code & 15) << i % 2 * kBits);
  };
  // [outputs, blocks, bytes of a block]; rows of zero points begin on bytes.
  const std::int64_t row_codes = per_line * blocks.size, row_zeros = (per_line + 1) / 2 * 2;
  std::string codes(static_cast<std::size_t>(outputs * row_codes / 2), '\0'),
      zeros(static_cast<std::size_t>(outputs * row_zeros / 2), '\0');
  for (std::int64_t n = 0; n < outputs; ++n) {
    for (std::int64_t k = 0; k < depth; ++k)
      put(codes, n * row_codes + k,
          integer_of(*how.format, how.codes[static_cast<std::size_t>(n * depth + k)]) + shift);
    for (std::int64_t b = 0; b < per_line; ++b)
      put(zeros, n * row_zeros + b,
          shift + (blocks.zero_points.empty()
                       ? 0
                       : blocks.zero_points[static_cast<std::size_t>(n * per_line + b)]));
  }
  OnnxProduct out{"com.microsoft.MatMulNBits",
                  name,
                  {writer_->constant(name + "_codes", OnnxType::uint8,
                                     {outputs, per_line, blocks.size / 2}, codes),
                   writer_->constant(name + "_scale", {outputs, per_line}, how.scales)},
                  {{"K", depth},
                   {"N", outputs},
                   {"bits", kBits},
                   {"block_size", blocks.size},
                   {"accuracy_level", std::int64_t{1}}}};  // 1: in float32
  // Without zero points those are half of the range.
  if (shift == 0 || !blocks.zero_points.empty())
    out.inputs.push_back(
        writer_->constant(name + "_zero_point", OnnxType::uint8, {outputs, row_zeros / 2}, zeros));
  domains_.insert("com.microsoft");
  return out;
}

OnnxProduct OperandWriter::integers(const OnnxLayer& how, const std::string& name,
                                    const std::string& x, std::int64_t rank, bool whole,
                                    const Shape& shape) {
  // Both as uint8: sums of uint8 times int8 saturate on processors with AVX2 alone.
  constexpr std::int32_t kHalf = 128;
  const OnnxOperand &weight = *how.weight, &activation = *how.activation;
  const auto of = [&](const char* part) { return name + part; };
  const auto half_of = [](const OnnxOperand& operand) {
    return operand.format->is_signed ? kHalf : 0;
  };
  const auto zero_point = [&](const char* part, const OnnxOperand& operand) {
    return writer_->constant(of(part), OnnxType::uint8, {},
                             zero_bytes(OnnxType::uint8, half_of(operand)));
  };
  std::vector<std::int64_t> axes;
  if (activation.scale_of == OnnxScaleOf::row) {
    axes = {rank - 1};
  } else if (!whole) {
    for (std::int64_t axis = 1; axis < rank; ++axis) axes.push_back(axis);
  }
  const Codes found = computed(activation, of("_input"), x, axes);
  const std::string half =
      writer_->constant(of("_input_half"), static_cast<float>(half_of(activation)));
  const std::string input_bytes =
      cast(of("_input_bytes"), writer_->value("Add", of("_input_shifted"), {found.codes, half}),
           OnnxType::uint8);

  const bool taps = shape.size() > 2;
  const WeightOrder order = taps ? order_of_conv(shape) : order_of_turned(shape[0], shape[1]);
  std::string bytes;
  for (const std::uint16_t code : in_order(order, weight.codes))
    bytes += static_cast<char>(integer_of(*weight.format, code) + half_of(weight));
  const std::string codes =
      writer_->constant(of("_weight_codes"), OnnxType::uint8, order.dims, bytes);
  Shape scale_dims;
  if (weight.scales.size() > 1) {
    if (taps) scale_dims.resize(shape.size() - 1, 1);
    scale_dims.resize(std::max<std::size_t>(1, scale_dims.size()), 1);
    scale_dims[0] = std::ssize(weight.scales);
  }
  const std::string scale = writer_->constant(of("_weight_scale"), scale_dims, weight.scales);
  OnnxProduct out{taps ? "ConvInteger" : "MatMulInteger",
                  name,
                  {input_bytes, codes, zero_point("_input_zero_point", activation),
                   zero_point("_weight_zero_point", weight)}};
  out.factor = writer_->value("Mul", of("_factor"), {found.scale, scale});
  if (taps) {
    out.bias_shape = std::vector<std::int64_t>(shape.size() - 1, 1);
    out.bias_shape[0] = -1;
  }
  return out;
}

}  // namespace numemu::net
