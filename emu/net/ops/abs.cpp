#include "emu/net/ops/abs.hpp"

#include <cmath>

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Abs::values(std::int64_t n, const float* x, float* y) const {
  for_each_element(n, [=](std::int64_t i) { y[i] = neutral(std::fabs(x[i])); });
}

void Abs::gradients(std::int64_t n, const float* seen, const float* g, float* dx) const {
  for_each_element(n, [=](std::int64_t i) {
    const float side = seen[i] > 0 ? g[i] : -g[i];
    dx[i] = seen[i] == 0 ? 0 : neutral(side);
  });
}

}  // namespace numemu::net
