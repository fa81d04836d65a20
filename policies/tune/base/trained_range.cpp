#include "policies/tune/base/trained_range.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {
namespace {

// Elements whose gradients a thread sums; the sum of a group is that of such pieces.
constexpr std::int64_t kPiece = std::int64_t{1} << 14;

/// To the nearest integer, ties to even, for |x| < 2^22: adding leaves no fraction bits. Unlike
/// std::nearbyint it vectorises.
inline float rounded(float x) {
  constexpr float kNoFraction = 0x1.8p23f;
  return (x + kNoFraction) - kNoFraction;
}

}  // namespace

TrainedRange::Codes TrainedRange::codes_of(const Format& format, bool zero_point) {
  if (!format.is_signed) return {0, (1 << format.bits) - 1};
  const std::int32_t half = 1 << (format.bits - 1);
  return {zero_point ? -half : 1 - half, half - 1};
}

TrainedRange::TrainedRange(Codes codes, std::span<const float> scales,
                           std::span<const std::int32_t> zero_points)
    : codes_(codes) {
  const auto groups = static_cast<std::int64_t>(scales.size());
  net::Tensor range({groups}), least({groups});
  for (std::int64_t g = 0; g < groups; ++g) {
    range.data[g] = scales[g] * static_cast<float>(codes.high - codes.low);
    if (!zero_points.empty())
      least.data[g] = scales[g] * static_cast<float>(codes.low - zero_points[g]);
  }
  parameters_.push_back({"range", std::move(range)});
  if (!zero_points.empty()) parameters_.push_back({"least", std::move(least)});
}

TrainedRange::TrainedRange(Codes codes, float range, float least) : codes_(codes) {
  parameters_ = {{"range", net::Tensor({1}, range)}, {"least", net::Tensor({1}, least)}};
}

TensorScale TrainedRange::scale(std::int64_t g) const {
  const float range = std::max(parameters_[0].value.data[g], std::numeric_limits<float>::min());
  const float step = std::max(range / static_cast<float>(codes_.high - codes_.low),
                              std::numeric_limits<float>::min());
  if (parameters_.size() == 1) return {step, 0};
  const float low = static_cast<float>(codes_.low);
  const float zero =
      std::clamp(low - parameters_[1].value.data[g] / step, low, static_cast<float>(codes_.high));
  return {step, static_cast<std::int32_t>(rounded(zero))};
}

void TrainedRange::quantize(const net::Tensor& x, net::Tensor& y) const {
  y.shape = x.shape;
  y.data.resize(x.data.size());
  const std::int64_t each = x.size() / groups();
  const float low = static_cast<float>(codes_.low), high = static_cast<float>(codes_.high);
  for (std::int64_t g = 0; g < groups(); ++g) {
    const TensorScale scale = this->scale(g);
    const float step = scale.scale, zero = static_cast<float>(scale.zero_point);
    const float* const from = x.data.data() + g * each;
    float* const to = y.data.data() + g * each;
    net::for_each_element(each, [=](std::int64_t i) {
      const float code = std::min(std::max(from[i] / step + zero, low), high);
      to[i] = (rounded(code) - zero) * step;
    });
  }
}

void TrainedRange::backward(const net::Tensor& x, net::Tensor& gradient,
                            std::vector<net::Tensor>& parameters) const {
  const std::int64_t each = x.size() / groups();
  const float low = static_cast<float>(codes_.low), high = static_cast<float>(codes_.high),
              steps = high - low;
  const bool shifted = parameters_.size() == 2;
  parameters.assign(parameters_.size(), net::Tensor({groups()}));
  // Clamped below and above, along the range.
  const float at_low = shifted ? 0 : low / steps, at_high = shifted ? 1 : high / steps;
  const std::int64_t pieces = std::max<std::int64_t>(1, (each + kPiece - 1) / kPiece);
  std::vector<double> along_range(static_cast<std::size_t>(groups() * pieces)),
      along_least(along_range.size());
  net::for_each_row(groups() * pieces, kPiece, [&](std::int64_t task) {
    const std::int64_t g = task / pieces, begin = task % pieces * kPiece,
                       count = std::min(kPiece, each - begin);
    const TensorScale scale = this->scale(g);
    const float step = scale.scale, zero = static_cast<float>(scale.zero_point);
    const float* const from = x.data.data() + g * each + begin;
    float* const slope = gradient.data.data() + g * each + begin;
    along_range[task] = pairwise_sum(count, [&](std::int64_t i) {
      const float quotient = from[i] / step, code = quotient + zero;
      const float factor = code < low    ? at_low
                           : code > high ? at_high
                                         : (rounded(code) - zero - quotient) / steps;
      return double{slope[i]} * double{factor};
    });
    along_least[task] = pairwise_sum(count, [&](std::int64_t i) {
      const float code = from[i] / step + zero;
      return code < low || code > high ? double{slope[i]} : 0.0;
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const float code = from[i] / step + zero;
      slope[i] = code < low || code > high ? 0.0f : slope[i];
    }
  });
  for (std::int64_t g = 0; g < groups(); ++g) {
    const auto sum = [&](const std::vector<double>& parts) {
      return static_cast<float>(
          pairwise_sum(pieces, [&](std::int64_t i) { return parts[g * pieces + i]; }));
    };
    parameters[0].data[g] = sum(along_range);
    if (shifted) parameters[1].data[g] = sum(along_least);
  }
}

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
  const std::optional<TensorScale> fixed = policy->fixed_scale();
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
