// y = |x|; dx = g for x > 0, -g for x < 0, 0 at 0.
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

class Abs final : public Pointwise {
 public:
  Abs() : Pointwise(Sees::input) {}
  std::string_view kind() const override { return "abs"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;
};

}  // namespace numemu::net
