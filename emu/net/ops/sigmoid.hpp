// y = 1 / (1 + e^-x) within 2 ulp; dx = g y (1 - y).
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

class Sigmoid final : public Pointwise {
 public:
  Sigmoid() : Pointwise(Sees::output) {}
  std::string_view kind() const override { return "sigmoid"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;
};

}  // namespace numemu::net
