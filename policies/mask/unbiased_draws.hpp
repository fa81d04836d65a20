// Shared by the unbiased rules: exact comparisons with a draw, groups with NaN or infinities, and
// batches that fit the first-level cache.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "policies/mask/mask_rule.hpp"

namespace numemu::policies {

/// Whether u total < part, exactly, with u = r 2^-32 and finite 0 <= part <= total.
inline bool draws_below(std::uint32_t r, float total, float part) {
  // Both as (significand, exponent of its last bit): at most 24 bits each, so that r times the one
  // and the other times 2^32 stay below 2^56.
  const auto exponent = [](float v) {
    return std::max<std::int32_t>(1,
                                  static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(v) >> 23));
  };
  const auto significand = [](float v) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(v), fraction = bits & 0x7fffffU;
    return std::uint64_t{bits >> 23 == 0 ? fraction : fraction | 0x800000U};
  };
  const std::uint64_t drawn = r * significand(total), limit = significand(part) << 32;
  const std::int32_t shift = exponent(total) - exponent(part);  // drawn 2^shift < limit?
  if (shift >= 64) return drawn == 0 && limit != 0;
  const std::uint64_t cut = limit >> shift;
  return drawn < cut || (drawn == cut && cut << shift != limit);
}

/// The largest magnitude of a group; infinity where an element is NaN.
inline float group_amax(const float* x, int group) {
  std::uint32_t amax = 0;
  for (int i = 0; i < group; ++i)
    amax = std::max(amax, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffU);
  return std::bit_cast<float>(std::min(amax, 0x7f800000U));
}

/// NaN for the first `kept` of a group, 0 for the rest.
inline void write_nan_group(int kept, int group, float* y) {
  for (int i = 0; i < group; ++i) y[i] = i < kept ? std::bit_cast<float>(0x7fc00000U) : 0.0F;
}

/// `magnitude` with the sign of x, +0 for 0.
inline float signed_like(float magnitude, float x) {
  return magnitude == 0 ? 0.0F : std::copysign(magnitude, x);
}

/// Elements handled at a time: 4 KiB of values and of draws each.
inline constexpr std::int64_t kUnbiasedBatch = 1024;

/// Calls prune(x, first group, groups, y) for batches of at most kUnbiasedBatch elements; y is
/// never null. An element counts as kept where y is not zero.
template <class Prune>
void for_each_batch(const MaskRun& run, int group, Prune&& prune) {
  alignas(64) float unasked[kUnbiasedBatch];
  const std::int64_t most = kUnbiasedBatch / group;
  for (std::int64_t g = 0; g < run.count; g += most) {
    const std::int64_t groups = std::min(most, run.count - g), at = g * group;
    float* const y = run.y != nullptr ? run.y + at : unasked;
    prune(run.x + at, run.first + static_cast<std::uint64_t>(g), groups, y);
    if (run.keep == nullptr) continue;
    for (std::int64_t i = 0; i < groups * group; ++i) run.keep[at + i] = y[i] != 0 ? 1 : 0;
  }
}

}  // namespace numemu::policies
