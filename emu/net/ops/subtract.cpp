// Differences, element by element.
#include "emu/net/ops/subtract.hpp"

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Subtract::values(std::int64_t n, const float* a, const float* b, float* y) const {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = neutral(a[i] - b[i]);
}

void Subtract::gradients(std::int64_t n, const float*, const float*, const float* g, float* da,
                         float* db) const {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    da[i] = neutral(g[i]);
    db[i] = neutral(-g[i]);
  }
}

}  // namespace numemu::net
