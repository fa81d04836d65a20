#include "emu/net/ops/power.hpp"

#include "emu/net/math.hpp"
#include "emu/net/math_cores.hpp"
#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

void Power::values(std::int64_t n, const float* a, const float* b, float* y) const {
  for (std::int64_t i = 0; i < n; ++i) y[i] = pow(a[i], b[i]);
}

void Power::gradients(std::int64_t n, const float* a, const float* b, const float* g, float* da,
                      float* db) const {
  for (std::int64_t i = 0; i < n; ++i) {
    const double exponent = b[i];
    // The derivative of a^0 is 0 at a = 0 too.
    const double factor = b[i] == 0 ? 0 : exponent * pow(a[i], b[i] - 1);
    da[i] = neutral(static_cast<float>(g[i] * factor));
    const double slope = pow(a[i], b[i]) * core::log(a[i]);
    db[i] = a[i] == 0 && b[i] >= 0 ? 0 : neutral(static_cast<float>(g[i] * slope));
  }
}

}  // namespace numemu::net
