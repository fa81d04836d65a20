// What numerics keep of one layer between products: its quantizers, scales, weight and counts.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/unit/integer/requantize.hpp"
#include "policies/numerics/operand_counts.hpp"
#include "policies/numerics/overflow_sample.hpp"
#include "policies/numerics/plain_operand.hpp"
#include "policies/numerics/scale_memo.hpp"
#include "policies/recipe/recipe.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

class BlockSlices;

inline constexpr std::array<net::GemmKind, 3> kGemmKinds = {
    net::GemmKind::fprop, net::GemmKind::dgrad, net::GemmKind::wgrad};
inline constexpr std::array<net::Role, 3> kRoles = {net::Role::weight, net::Role::activation,
                                                    net::Role::gradient};

/// The codes that the epilogue of an integer unit makes of a forward product in inference.
struct ResultCodes {
  unit::Requantization how = unit::Requantization::real;
  RolePolicy role;                    ///< of integers of at most 8 bits
  TensorScale scale;                  ///< of the codes
  const net::Tensor* bias = nullptr;  ///< [channels], which the operator then does not add; or null
  bool fused = false;  ///< they are those of what is fused with the operator, a ReLU say
};

/// Those of all roles of a layer.
using LayerQuantizers = PerRolePart<std::optional<RoleQuantizer>>;
LayerQuantizers quantizers_of(const LayerRecipe&);

/// Of a layer that multiplies: what its LayerRecipe says, looked up once, and what changes while a
/// network runs.
struct LayerState {
  explicit LayerState(LayerRecipe, net::Role right = net::Role::activation);

  LayerRecipe recipe;
  net::Role right;  ///< activation, key or value: what `second` is of
  LayerQuantizers quantizers;
  std::optional<RoleQuantizer> second;  ///< right operand of fprop where it is an activation

  /// What a side of a product holds: its role, or key or value.
  net::Role operand(const net::Product&, net::Side) const;
  /// Of an operand; null where it stays float32.
  const RoleQuantizer* quantizer(const net::Product&, net::Side) const;
  const std::optional<RoleQuantizer>& operator[](RolePart part) const { return quantizers[part]; }
  bool stochastic_unit(net::GemmKind) const;
  bool one_sample = false;  ///< of a network whose arrays are one sample: one scale for a tensor

  /// Inference after freeze(): static scales of the left operand and, where that is an activation
  /// too, of the right one; nothing where scales are those of the current tensor.
  std::optional<TensorScale> activation_scale, second_scale;
  bool frozen = false;
  std::optional<ResultCodes> result_codes;
  /// By what a side holds: operand().
  std::array<ScaleMemo, net::kRoleCount> memos;
  std::mutex weight_mutex;
  std::atomic<bool> weight_ready = false;
  PlainOperand frozen_weight;
  std::shared_ptr<const unit::PreparedOperand> prepared_weight;  ///< of frozen_weight, for fprop

  using PerOperand = std::array<std::array<SharedCounts, 3>, 3>;
  PerOperand counts;  ///< [kind][role]
  SharedCounts& count(net::GemmKind kind, net::Role role) {
    return counts[static_cast<std::size_t>(kind)][static_cast<std::size_t>(role)];
  }

  std::mutex saturation_mutex;
  SaturationCounts saturation;  ///< of fprop

  /// The weight where fprop multiplies slices; `frozen_weight` is empty then.
  std::shared_ptr<const BlockSlices> sliced_weight;

  /// After freeze(): some forward product read the numbers of the weight itself, and the next pass
  /// will again.
  std::atomic<bool> reads_weight = false;
};

}  // namespace numemu::policies
