#include "emu/net/ops/sqrt.hpp"

#include <cmath>

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Sqrt::values(std::int64_t n, const float* x, float* y) const {
  for_each_element(n, [=](std::int64_t i) { y[i] = neutral(std::sqrt(x[i])); });
}

void Sqrt::gradients(std::int64_t n, const float* seen, const float* g, float* dx) const {
  for_each_element(n, [=](std::int64_t i) {
    const double y = seen[i];
    dx[i] = neutral(static_cast<float>(g[i] * (0.5 / y)));
  });
}

}  // namespace numemu::net
