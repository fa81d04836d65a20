// y = x where x > 0, slope x elsewhere; the gradient likewise.
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

class LeakyRelu final : public Pointwise {
 public:
  /// Throws Error unless the slope is finite.
  explicit LeakyRelu(float slope);
  float slope() const { return slope_; }
  std::string_view kind() const override { return "leaky_relu"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;

 private:
  float slope_;
};

}  // namespace numemu::net
