// y = tanh x within 2 ulp; dx = g (1 - y^2).
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

class Tanh final : public Pointwise {
 public:
  Tanh() : Pointwise(Sees::output) {}
  std::string_view kind() const override { return "tanh"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;
};

}  // namespace numemu::net
