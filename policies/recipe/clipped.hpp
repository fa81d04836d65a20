// The clipped straight-through estimator: gradients of elements that saturated in forward are zero.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "emu/net/numerics.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// 1 where an element of the source lies beyond the largest (or below the smallest) element of the
/// format under its scale, in the order of the source.
using Saturated = std::vector<std::uint8_t>;

/// Of a source under one scale for every equal share.
Saturated saturated_elements(const RoleQuantizer&, const net::Tensor&,
                             const std::vector<float>& scales);
/// Of a source quantized by blocks along its lines (`axis` channel). Throws Error for elements of
/// more than 8 bits.
Saturated saturated_blocks(const RoleQuantizer&, const net::ProductSide&, const RandomPiece&);

/// The masks of one layer in one step. A layer may multiply several times in a step (recurrence):
/// backward meets its products in the opposite order.
class ClippedMasks {
 public:
  /// Of a forward product, empty for a side that is not clipped.
  void push(Saturated a, Saturated b);
  /// Zeros in the result of dgrad (the gradient of A) or wgrad (that of B). Throws Error when the
  /// result has another size than the operand of the forward product it belongs to.
  void apply(const net::Product&);
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    Saturated mask[2];
    bool used[2] = {false, false};
  };
  std::vector<Entry> entries_;
};

}  // namespace numemu::policies
