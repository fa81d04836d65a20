#include "emu/net/ops/leaky_relu.hpp"

#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {

LeakyRelu::LeakyRelu(float slope) : Pointwise(Sees::input), slope_(slope) {
  if (!std::isfinite(slope))
    throw Error("leaky_relu: expected a finite slope, got " + std::to_string(slope));
}

void LeakyRelu::values(std::int64_t n, const float* x, float* y) const {
  for_each_element(n, [=, slope = slope_](std::int64_t i) {
    const float scaled = slope * x[i];
    y[i] = neutral(x[i] > 0 ? x[i] : scaled);
  });
}

void LeakyRelu::gradients(std::int64_t n, const float* seen, const float* g, float* dx) const {
  for_each_element(n, [=, slope = slope_](std::int64_t i) {
    const float scaled = slope * g[i];
    dx[i] = neutral(seen[i] > 0 ? g[i] : scaled);
  });
}

}  // namespace numemu::net
