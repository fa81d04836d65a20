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
  opset_ = std::max<std::int64_t>(opset_, small ? 21 : !float8_format(*type).empty() ? 19 : 13);
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

std::string OperandWriter::activation(const OnnxOperand& how, const std::string& layer,
                                      const std::string& name, const std::string& x) {
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

}  // namespace numemu::net
