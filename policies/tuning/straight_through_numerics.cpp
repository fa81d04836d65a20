// Cold: a negligible share of any run (docs/build.md).
#include "policies/tuning/straight_through_numerics.hpp"

#include "emu/net/gemm_layers.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

StraightThroughNumerics::StraightThroughNumerics(const Tuning& tuning, bool weights)
    : OwnedNumerics{tuned_numerics(tuning, tuning.reference)}, Forwarding(*owned) {
  weights_changed(tuning);
  for (const net::GemmLayer& layer : net::gemm_layers(tuning.graph)) {
    // Of two activations the gradient of the second is no weight's.
    if (!weights && layer.weight != nullptr) unread_.insert(layer.name);
    const std::optional<RolePolicy>& role = owned->recipe(layer.name)[RolePart::activation];
    if (!role) continue;
    if (const std::optional<TensorScale> fixed = fixed_scale(role->scale))
      reach_[layer.name] = range_of(*role, *fixed);
  }
}

void StraightThroughNumerics::weights_changed(const Tuning& tuning) {
  owned->freeze_weights(tuning.graph, tuning.calibration);
  rounded_.clear();
}

void StraightThroughNumerics::begin_step(const net::Step& step) {
  Forwarding::begin_step(step);
  beyond_.clear();  // the first layer has no backward
}

const net::Tensor& StraightThroughNumerics::rounded(std::string_view layer,
                                                    const net::Tensor& weight) {
  const auto found = rounded_.find(layer);
  if (found != rounded_.end()) return found->second;
  const PlainOperand* const operand = owned->frozen_weight(layer);
  if (operand == nullptr) return weight;
  net::Tensor& values = rounded_[std::string(layer)];
  values = net::Tensor(weight.shape);
  if (operand->dequantized) {
    values.data = operand->values;
  } else {
    operand->codes.values(values.data.data());
  }
  return values;
}

void StraightThroughNumerics::product(const net::Step& step, const net::Product& product) {
  const auto reach = reach_.find(product.layer);
  if (product.kind == net::GemmKind::fprop) {
    Forwarding::product(step, product);
    if (reach == reach_.end()) return;
    const std::vector<float>& x = product.a.source->data;
    std::vector<bool>& beyond = beyond_[reach->first].emplace_back(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      beyond[i] = x[i] < reach->second.low || x[i] > reach->second.high;
    return;
  }
  if (product.kind == net::GemmKind::wgrad) {
    if (!unread_.contains(product.layer)) Numerics::product(step, product);
    return;
  }
  net::Product backward = product;
  if (product.b.role == net::Role::weight)
    backward.b.source = &rounded(product.layer, *product.b.source);
  Numerics::product(step, backward);
  if (reach == reach_.end()) return;
  std::vector<std::vector<bool>>& kept = beyond_[reach->first];
  const std::vector<bool> beyond = std::move(kept.back());
  kept.pop_back();
  for (std::size_t i = 0; i < beyond.size(); ++i) {
    if (beyond[i]) product.d[i] = 0;
  }
}

}  // namespace numemu::policies
