#include "emu/net/ops/reciprocal.hpp"

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Reciprocal::values(std::int64_t n, const float* x, float* y) const {
  for_each_element(n, [=](std::int64_t i) { y[i] = neutral(1 / x[i]); });
}

void Reciprocal::gradients(std::int64_t n, const float* seen, const float* g, float* dx) const {
  for_each_element(n, [=](std::int64_t i) {
    const double y = seen[i];
    dx[i] = neutral(static_cast<float>(-g[i] * (y * y)));
  });
}

}  // namespace numemu::net
