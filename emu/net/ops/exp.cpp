#include "emu/net/ops/exp.hpp"

#include "emu/net/math_cores.hpp"
#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Exp::values(std::int64_t n, const float* x, float* y) const {
  for_each_element(n, [=](std::int64_t i) { y[i] = neutral(static_cast<float>(core::exp(x[i]))); });
}

void Exp::gradients(std::int64_t n, const float* seen, const float* g, float* dx) const {
  for_each_element(n, [=](std::int64_t i) { dx[i] = neutral(g[i] * seen[i]); });
}

}  // namespace numemu::net
