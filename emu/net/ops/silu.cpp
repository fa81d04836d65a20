// x times its logistic function, and the derivative, element by element.
#include "emu/net/ops/silu.hpp"

#include "emu/net/math_cores.hpp"
#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {
namespace {

// From here on the result is x or rounds to 0, and the derivative to 1 or 0.
constexpr double kFar = 120;
// -inf times 0 would be NaN where the limit is 0.
double held(double x) { return x < -kFar ? -kFar : x; }

}  // namespace

void Silu::values(std::int64_t n, const float* x, float* y) const {
  for_each_element(n, [=](std::int64_t i) {
    y[i] = neutral(static_cast<float>(held(x[i]) * core::sigmoid(x[i])));
  });
}

void Silu::gradients(std::int64_t n, const float* seen, const float* g, float* dx) const {
  for_each_element(n, [=](std::int64_t i) {
    const double x = core::clamp(seen[i], -kFar, kFar), s = core::sigmoid(x);
    dx[i] = neutral(static_cast<float>(g[i] * (s + x * (s * (1 - s)))));
  });
}

}  // namespace numemu::net
