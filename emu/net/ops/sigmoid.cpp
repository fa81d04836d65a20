#include "emu/net/ops/sigmoid.hpp"

#include "emu/net/math_cores.hpp"
#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Sigmoid::values(std::int64_t n, const float* x, float* y) const {
  for_each_element(
      n, [=](std::int64_t i) { y[i] = neutral(static_cast<float>(core::sigmoid(x[i]))); });
}

void Sigmoid::gradients(std::int64_t n, const float* seen, const float* g, float* dx) const {
  for_each_element(n, [=](std::int64_t i) {
    const double y = seen[i];
    dx[i] = neutral(static_cast<float>(g[i] * (y * (1 - y))));
  });
}

}  // namespace numemu::net
