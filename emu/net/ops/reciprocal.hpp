// y = 1 / x, correctly rounded; dx = -g y^2.
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

class Reciprocal final : public Pointwise {
 public:
  Reciprocal() : Pointwise(Sees::output) {}
  std::string_view kind() const override { return "reciprocal"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;
};

}  // namespace numemu::net
