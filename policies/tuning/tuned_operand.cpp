// Cold: a negligible share of any run (docs/build.md).
#include "policies/tuning/tuned_operand.hpp"

#include "formats/error.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {
namespace {

bool has_range(const RolePolicy& policy) {
  return policy.block == nullptr && policy.format->kind == Kind::integer &&
         policy.format->bits <= 8 && policy.rounding.mode == RoundingMode::rne;
}

RoleQuantizer deterministic(const RolePolicy& policy) {
  if (policy.rounding.stochastic()) {
    throw Error("tuning: expected roles that round deterministically, found " + policy.describe());
  }
  return RoleQuantizer(policy);
}

}  // namespace

TunedOperand TunedOperand::weight(const std::optional<RolePolicy>& policy,
                                  const net::Tensor& weight) {
  TunedOperand operand;
  if (!policy) return operand;
  operand.quantizer_ = deterministic(*policy);
  if (has_range(*policy))
    operand.range_.emplace(TrainedRange::codes_of(*policy->format, false),
                           choose_scales(*policy, weight), std::span<const std::int32_t>{});
  return operand;
}

TunedOperand TunedOperand::activation(const std::optional<RolePolicy>& policy) {
  TunedOperand operand;
  if (!policy) return operand;
  operand.quantizer_ = deterministic(*policy);
  const std::optional<TensorScale> fixed = fixed_scale(policy->scale);
  operand.of_samples_ = !fixed && policy->granularity == Granularity::tensor;
  if (!fixed || !has_range(*policy)) return operand;
  const float scale[] = {fixed->scale};
  const std::int32_t zero_point[] = {fixed->zero_point};
  operand.range_.emplace(TrainedRange::codes_of(*policy->format, policy->zero_point), scale,
                         policy->zero_point ? std::span<const std::int32_t>(zero_point)
                                            : std::span<const std::int32_t>{});
  return operand;
}

void TunedOperand::quantize(const net::Tensor& x, net::Tensor& y) const {
  if (range_) return range_->quantize(x, y);
  y.shape = x.shape;
  if (!quantizer_) {
    y.data = x.data;
    return;
  }
  const RolePolicy& policy = quantizer_->policy();
  y.data.resize(x.data.size());
  if (policy.block != nullptr) {
    const std::int64_t length =
        policy.axis == BlockAxis::reduction ? x.size() / x.dim(0) : x.dim(-1);
    quantizer_->quantize(block_layout(*policy.block, {x.size() / length, length}, 1), x.data.data(),
                         {}, {}, y.data.data());
    return;
  }
  QuantizedTensor codes;
  quantize_tensor(*quantizer_, x.data.data(), x.size(),
                  of_samples_ ? choose_scales(*quantizer_, x.data.data(), x.size(), x.dim(0))
                              : choose_scales(policy, x),
                  {}, codes);
  codes.values(y.data.data());
}

void TunedOperand::backward(const net::Tensor& x, net::Tensor& gradient,
                            std::vector<net::Tensor>& parameters) const {
  parameters.clear();
  if (range_) range_->backward(x, gradient, parameters);
}

}  // namespace numemu::policies
