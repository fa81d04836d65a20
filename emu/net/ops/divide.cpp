#include "emu/net/ops/divide.hpp"

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Divide::values(std::int64_t n, const float* a, const float* b, float* y) const {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = neutral(a[i] / b[i]);
}

void Divide::gradients(std::int64_t n, const float* a, const float* b, const float* g, float* da,
                       float* db) const {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const double numerator = a[i], denominator = b[i];
    da[i] = neutral(g[i] / b[i]);
    db[i] = neutral(static_cast<float>(-g[i] * (numerator / (denominator * denominator))));
  }
}

}  // namespace numemu::net
