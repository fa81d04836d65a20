// x clamped between two bounds; also ReLU6.
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

/// y = min(max(x, low), high), NaN for NaN. The gradient passes where low < y < high (and through
/// NaN).
class Clip final : public Pointwise {
 public:
  /// Infinite bounds do not bind. Throws Error unless low <= high.
  Clip(float low, float high);
  float low() const { return low_; }
  float high() const { return high_; }
  std::string_view kind() const override { return "clip"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;

 private:
  float low_, high_;
};

}  // namespace numemu::net
