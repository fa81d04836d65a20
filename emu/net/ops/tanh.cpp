#include "emu/net/ops/tanh.hpp"

#include "emu/net/math_cores.hpp"
#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Tanh::values(std::int64_t n, const float* x, float* y) const {
  for_each_element(n,
                   [=](std::int64_t i) { y[i] = neutral(static_cast<float>(core::tanh(x[i]))); });
}

void Tanh::gradients(std::int64_t n, const float* seen, const float* g, float* dx) const {
  for_each_element(n, [=](std::int64_t i) {
    const double y = seen[i];
    dx[i] = neutral(static_cast<float>(g[i] * (1 - y * y)));
  });
}

}  // namespace numemu::net
