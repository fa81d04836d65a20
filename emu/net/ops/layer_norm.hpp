// Layer normalisation over the last axis.
#pragma once
#include "emu/net/ops/row_norm.hpp"

namespace numemu::net {

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias along the last axis (the variance
/// divides by `size`), in float64, rounded once.
class LayerNorm final : public RowNorm {
 public:
  /// Throws Error unless size and epsilon are positive.
  explicit LayerNorm(std::int64_t size, double epsilon = 1e-5)
      : RowNorm("layer_norm", size, epsilon, true) {}
};

}  // namespace numemu::net
