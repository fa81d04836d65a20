// Scale rule floor: the exponent of the largest magnitude less that of the largest element (OCP MX
// 1.0, section 6.3); the largest magnitudes of a binade may saturate.
#include "formats/scaling/scale_exponent.hpp"

namespace numemu {

extern const ScaleRule scale_floor{
    "floor",
    "s = floor(log2 amax) - exponent of the largest element",
    /*fills_range=*/true,
    /*stores_scale=*/true,
    /*scale=*/nullptr,
    [](const ExponentRequest& r) {
      const std::int32_t down = leading(largest_element(*r.format)).exponent;
      const ExponentRange range = exponent_range(*r.format->scale);
      // Zero and subnormal numbers count as 2^-127: where that is not below the range already, the
      // exact exponents decide.
      if (-127 - down > range.lowest)
        return for_each_block(r, [&](const Leading& amax) { return amax.exponent - down; });
      const std::int32_t zero = 127 + down;
#pragma omp simd
      for (std::int64_t b = 0; b < r.blocks; ++b) {
        const auto field = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(r.amax[b]) >> 23);
        r.exponents[b] = std::clamp(field - zero, range.lowest, range.highest);
      }
    }};

}  // namespace numemu
