#include "emu/net/ops/log.hpp"

#include "emu/net/math_cores.hpp"
#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Log::values(std::int64_t n, const float* x, float* y) const {
  for_each_element(n, [=](std::int64_t i) { y[i] = neutral(static_cast<float>(core::log(x[i]))); });
}

void Log::gradients(std::int64_t n, const float* seen, const float* g, float* dx) const {
  for_each_element(n, [=](std::int64_t i) { dx[i] = neutral(g[i] / seen[i]); });
}

}  // namespace numemu::net
