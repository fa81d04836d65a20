// y = e^x within 1 ulp; dx = g y.
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

class Exp final : public Pointwise {
 public:
  Exp() : Pointwise(Sees::output) {}
  std::string_view kind() const override { return "exp"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;
};

}  // namespace numemu::net
