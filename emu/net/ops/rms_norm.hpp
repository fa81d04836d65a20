// Root mean square normalisation over the last axis.
#pragma once
#include "emu/net/ops/row_norm.hpp"

namespace numemu::net {

/// y = x / sqrt(mean(x^2) + epsilon) * weight along the last axis, in float64, rounded once (Zhang
/// and Sennrich 2019).
class RmsNorm final : public RowNorm {
 public:
  /// Throws Error unless size and epsilon are positive.
  explicit RmsNorm(std::int64_t size, double epsilon = 1e-6)
      : RowNorm("rms_norm", size, epsilon, false) {}
};

}  // namespace numemu::net
