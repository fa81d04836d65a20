// y = x / (1 + e^-x) within 2 ulp; 0 for -inf.
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

class Silu final : public Pointwise {
 public:
  Silu() : Pointwise(Sees::input) {}
  std::string_view kind() const override { return "silu"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;
};

}  // namespace numemu::net
