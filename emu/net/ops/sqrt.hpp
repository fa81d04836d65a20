// y = sqrt x, correctly rounded, NaN for negatives; dx = g / (2 y).
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

class Sqrt final : public Pointwise {
 public:
  Sqrt() : Pointwise(Sees::output) {}
  std::string_view kind() const override { return "sqrt"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;
};

}  // namespace numemu::net
