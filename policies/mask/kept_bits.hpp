// The order of magnitudes, and writing a group from its kept positions.
#pragma once
#include <bit>
#include <cstdint>

#include "policies/mask/mask_rule.hpp"

namespace numemu::policies {

/// Its bits without the sign: as integers they order as the magnitudes do, and NaN > infinity >
/// finite.
inline std::uint32_t magnitude_bits(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
}

/// x where `keeps` is 1, +0 where it is 0, without a branch: masks cannot be predicted.
inline float kept_or_zero(float x, std::uint32_t keeps) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & (0U - keeps));
}

/// Writes y and keep of group g of the run if they are not null; bit i: position i is kept.
inline void write_group(const MaskRun& run, std::int64_t g, int group, std::uint32_t kept) {
  const std::int64_t at = g * group;
  if (run.y != nullptr) {
    for (int i = 0; i < group; ++i) run.y[at + i] = kept_or_zero(run.x[at + i], kept >> i & 1U);
  }
  if (run.keep != nullptr) {
    for (int i = 0; i < group; ++i) run.keep[at + i] = kept >> i & 1U;
  }
}

/// Sum of the squares of what a group loses, ascending in float64.
inline double pruned_squares(const float* x, int group, std::uint32_t kept) {
  double sum = 0;
  for (int i = 0; i < group; ++i) {
    if ((kept >> i & 1U) == 0) sum += double{x[i]} * x[i];
  }
  return sum;
}

}  // namespace numemu::policies
