// y = erf x within 2 ulp; dx = g 2 / sqrt(pi) e^(-x^2).
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

class Erf final : public Pointwise {
 public:
  Erf() : Pointwise(Sees::input) {}
  std::string_view kind() const override { return "erf"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;
};

}  // namespace numemu::net
