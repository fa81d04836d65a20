#include "emu/net/ops/multiply.hpp"

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Multiply::values(std::int64_t n, const float* a, const float* b, float* y) const {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = neutral(a[i] * b[i]);
}

void Multiply::gradients(std::int64_t n, const float* a, const float* b, const float* g, float* da,
                         float* db) const {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    da[i] = neutral(g[i] * b[i]);
    db[i] = neutral(g[i] * a[i]);
  }
}

}  // namespace numemu::net
