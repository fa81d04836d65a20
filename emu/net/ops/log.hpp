// y = ln x within 1 ulp, -inf for 0, NaN for negatives; dx = g / x.
#pragma once
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

class Log final : public Pointwise {
 public:
  Log() : Pointwise(Sees::input) {}
  std::string_view kind() const override { return "log"; }

 protected:
  void values(std::int64_t n, const float* x, float* y) const override;
  void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const override;
};

}  // namespace numemu::net
