#include "policies/numerics/plain_operand.hpp"

#include <fmt/format.h>

#include "emu/net/tensor.hpp"
#include "policies/numerics/operands/block_lines.hpp"
#include "policies/numerics/operands/weight_tiles.hpp"

namespace numemu::policies {

void prepare_plain(const RoleQuantizer& quantizer, const net::Product& p, net::Side which,
                   const PlainPreparation& how, PlainOperand& out) {
  const net::ProductSide& side = p.side(which);
  const net::Tensor& x = *side.source;
  net::require_elements(x, fmt::format("{}/{}", p.layer, net::to_string(side.role)));
  out.dequantized = quantizer.blocks();
  out.as_read.format = nullptr;
  if (quantizer.policy().granularity == Granularity::tile) {
    out.flags = quantize_tiles(quantizer, x, how.random, out.values);
    return;
  }
  if (quantizer.blocks()) {
    const bool reduction = quantizer.policy().axis == BlockAxis::reduction;
    out.flags =
        quantize_lines(quantizer, side, reduction ? Lines(side, p.k) : Lines(p, which), how.random,
                       quantizer.policy().block->tensor_scale ? how.samples : 1, out.values);
    return;
  }
  if (quantizer.policy().zero_point) {
    const TensorScale scale =
        how.fixed ? *how.fixed : quantizer.scale_of_elements(x.data.data(), x.size());
    quantize_affine(quantizer, x.data.data(), x.size(), scale, how.random, out.codes);
    out.flags = out.codes.flags;
    out.dequantized = p.kind != net::GemmKind::fprop;
    if (out.dequantized) {
      out.values.resize(x.data.size());
      out.codes.values(out.values.data());
    } else if (how.wide != nullptr) {
      reencode(out.codes, *how.wide, out.as_read);
    }
    return;
  }
  thread_local std::vector<float> copy;
  const float* const elements = in_groups(how.groups, side, copy);
  std::vector<float> scales =
      how.fixed             ? std::vector<float>{how.fixed->scale}
      : how.memo != nullptr ? how.memo->scales(quantizer, elements, x.size(), how.groups.count)
                            : choose_scales(quantizer, elements, x.size(), how.groups.count);
  quantize_tensor(quantizer, elements, x.size(), std::move(scales), how.random, out.codes);
  out.flags = out.codes.flags;
  // No code of a sign means 0: borders are zeros of float32 numbers. No unit multiplies codes of a
  // codebook.
  const bool no_border = side.gather->padding.identity() || quantizer.policy().format->has_zero();
  out.dequantized =
      !how.groups.of_results || !no_border || out.codes.format->kind == Kind::codebook;
  if (out.dequantized) {
    out.values.resize(x.data.size());
    out.codes.values(out.values.data());
    from_groups(how.groups, side, out.values);
  } else {
    from_groups(how.groups, side, out.codes.narrow);
    from_groups(how.groups, side, out.codes.wide);
    if (how.wide != nullptr) reencode(out.codes, *how.wide, out.as_read);
  }
}

net::SourceCodes codes_of(const RoleQuantizer&, const PlainOperand& operand) {
  if (operand.dequantized) return {&float32(), operand.values.data()};
  const QuantizedTensor& read = operand.as_read.format != nullptr ? operand.as_read : operand.codes;
  return {read.format, read.codes()};
}

OperandScales scales_of(const RoleQuantizer& quantizer, const net::Product& p, net::Side which,
                        const ScaleGroups& groups, const PlainOperand& operand) {
  const net::ProductSide& side = p.side(which);
  if (operand.dequantized) return {};
  const std::vector<float>& scales = operand.codes.scales;
  if (groups.columns) return {OperandScales::Kind::column, scales, side.stack.count()};
  const std::string role(net::to_string(side.role));
  const std::string key = "roles." + role + ".granularity";
  switch (quantizer.policy().granularity) {
    case Granularity::channel:
      if (side.role == net::Role::weight) return channel_scales(p, which, scales, key.c_str());
      return row_scales(p, which, scales, key.c_str());
    case Granularity::row:
      return row_scales(p, which, scales, key.c_str());
    default:
      return sample_scales(p, scales);
  }
}

}  // namespace numemu::policies
