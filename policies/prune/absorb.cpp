#include "policies/prune/absorb.hpp"

#include <bit>

#include "formats/float_guard.hpp"
#include "policies/prune/kept_bits.hpp"

namespace numemu::policies {
namespace {

constexpr float kNaN = std::bit_cast<float>(0x7fc00000);

float with_share(float x, double share) {
  const auto sum = static_cast<float>(x + share);
  return sum == sum ? sum : kNaN;
}

}  // namespace

void absorb_pruned(std::int64_t groups, std::int64_t size, const float* x, const std::uint8_t* keep,
                   float* y) {
  const FloatGuard guard;
  for (std::int64_t g = 0; g < groups; ++g, x += size, keep += size, y += size) {
    double pruned = 0;
    std::uint32_t kept = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      pruned += kept_or_zero(x[i], 1U - keep[i]);
      kept += keep[i];
    }
    const double share = kept == 0 ? 0 : pruned / kept;
    if (share == 0) {
      for (std::int64_t i = 0; i < size; ++i) y[i] = kept_or_zero(x[i], keep[i]);
    } else {
      for (std::int64_t i = 0; i < size; ++i) y[i] = kept_or_zero(with_share(x[i], share), keep[i]);
    }
  }
}

}  // namespace numemu::policies
