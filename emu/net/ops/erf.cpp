#include "emu/net/ops/erf.hpp"

#include "emu/net/math_cores.hpp"
#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Erf::values(std::int64_t n, const float* x, float* y) const {
  for_each_element(n, [=](std::int64_t i) { y[i] = neutral(static_cast<float>(core::erf(x[i]))); });
}

void Erf::gradients(std::int64_t n, const float* seen, const float* g, float* dx) const {
  for_each_element(n, [=](std::int64_t i) {
    const double x = seen[i];
    constexpr double kTwoBySqrtPi = 0x1.20dd750429b6dp+0;
    dx[i] = neutral(static_cast<float>(g[i] * (kTwoBySqrtPi * core::exp(-x * x))));
  });
}

}  // namespace numemu::net
