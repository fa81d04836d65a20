// Sums, element by element.
#include "emu/net/ops/add.hpp"

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Add::values(std::int64_t n, const float* a, const float* b, float* y) const {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = neutral(a[i] + b[i]);
}

void Add::gradients(std::int64_t n, const float*, const float*, const float* g, float* da,
                    float* db) const {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    da[i] = db[i] = neutral(g[i]);
  }
}

}  // namespace numemu::net
