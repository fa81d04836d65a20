#include "policies/recipe/plain_operand.hpp"

#include "policies/recipe/block_lines.hpp"

namespace numemu::policies {
namespace {

std::int64_t groups_of(const RolePolicy& policy, const net::ProductSide& side,
                       std::int64_t samples) {
  if (policy.granularity == Granularity::channel) return side.source->dim(0);
  if (policy.granularity == Granularity::row) return side.source->size() / side.stack.width;
  return samples;
}

}  // namespace

const Format& float32() {
  static const Format& format = find_format("float32");
  return format;
}

void prepare_plain(const RoleQuantizer& quantizer, const net::ProductSide& side, const float* fixed,
                   std::int64_t samples, const RandomPiece& random, PlainOperand& out) {
  const net::Tensor& x = *side.source;
  if (quantizer.blocks()) {
    out.flags = quantize_lines(quantizer, side, random,
                               quantizer.policy().block->tensor_scale ? samples : 1, out.values);
    return;
  }
  std::vector<float> scales;
  if (fixed != nullptr) {
    scales.push_back(*fixed);
  } else {
    scales = choose_scales(quantizer, x.data.data(), x.size(),
                           groups_of(quantizer.policy(), side, samples));
  }
  quantize_tensor(quantizer, x.data.data(), x.size(), std::move(scales), random, out.codes);
  out.flags = out.codes.flags;
}

net::SourceCodes codes_of(const RoleQuantizer& quantizer, const PlainOperand& operand) {
  if (quantizer.blocks()) return {&float32(), operand.values.data()};
  return {operand.codes.format, operand.codes.codes()};
}

OperandScales scales_of(const RoleQuantizer& quantizer, const net::Product& p,
                        const net::ProductSide& side, const PlainOperand& operand) {
  if (quantizer.blocks()) return {};
  const std::string role(net::to_string(side.role));
  const std::string key = "roles." + role + ".granularity";
  switch (quantizer.policy().granularity) {
    case Granularity::channel:
      return channel_scales(p, side, operand.codes.scales, key.c_str());
    case Granularity::row:
      return row_scales(p, side, operand.codes.scales, key.c_str());
    default:
      return sample_scales(p, operand.codes.scales);
  }
}

}  // namespace numemu::policies
