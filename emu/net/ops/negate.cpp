#include "emu/net/ops/negate.hpp"

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Negate::values(std::int64_t n, const float* x, float* y) const {
  for_each_element(n, [=](std::int64_t i) { y[i] = neutral(-x[i]); });
}

void Negate::gradients(std::int64_t n, const float*, const float* g, float* dx) const {
  for_each_element(n, [=](std::int64_t i) { dx[i] = neutral(-g[i]); });
}

}  // namespace numemu::net
