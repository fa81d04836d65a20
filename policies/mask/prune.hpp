// A mask that draws anew in every step, applied to a tensor of a product.
#pragma once
#include <cstdint>
#include <string_view>

#include "emu/net/numerics.hpp"
#include "policies/mask/mask_tensor.hpp"
#include "policies/mask/threshold_history.hpp"

namespace numemu::policies {

/// The product whose tensor is pruned: where its draws come from, and its thresholds.
struct Pruning {
  std::uint64_t seed = 0;
  net::Phase phase = net::Phase::inference;
  std::string_view layer = {};
  net::Role role = net::Role::activation;
  std::string_view axis = {};     ///< of the tensor identity: "mask-channel"
  std::int64_t step = 0;          ///< of training
  std::int64_t repetition = 0;    ///< training: Product::repetition_in()
  std::int64_t first_sample = 0;  ///< inference: of the batch
  /// Training: thresholds that products of a step share; null: the tensor's own.
  StepThresholds* thresholds = nullptr;
};

Pruning pruning_of(std::uint64_t seed, const net::Step&, const net::Product&, net::Role);

/// y = x under the mask. The draws have the tensor identity LAYER/ROLE/STEP/AXIS, with the step
/// "7.1", "7.2" for the second and later products of a kind in a step. In inference the `samples`
/// equal shares of a tensor are pruned as if each stood alone.
void prune(const MaskPolicy&, const Pruning&, const MaskLayout&, std::int64_t samples,
           const float* x, float* y);

}  // namespace numemu::policies
