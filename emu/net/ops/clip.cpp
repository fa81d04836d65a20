#include "emu/net/ops/clip.hpp"

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {

Clip::Clip(float low, float high) : Pointwise(Sees::output), low_(low), high_(high) {
  if (!(low <= high)) {
    throw Error("clip: expected low <= high, got " + std::to_string(low) + " and " +
                std::to_string(high));
  }
}

void Clip::values(std::int64_t n, const float* x, float* y) const {
  for_each_element(n, [=, low = low_, high = high_](std::int64_t i) {
    const float above = x[i] < low ? low : x[i];
    y[i] = neutral(above > high ? high : above);
  });
}

void Clip::gradients(std::int64_t n, const float* seen, const float* g, float* dx) const {
  for_each_element(n, [=, low = low_, high = high_](std::int64_t i) {
    const float kept = seen[i] <= low ? 0 : neutral(g[i]);
    dx[i] = seen[i] >= high ? 0 : kept;
  });
}

}  // namespace numemu::net
