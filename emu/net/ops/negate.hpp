// y = -x; dx = -g.
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

class Negate final : public Pointwise {
 public:
  Negate() : Pointwise(Sees::nothing) {}
  std::string_view kind() const override { return "negate"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;
};

}  // namespace numemu::net
