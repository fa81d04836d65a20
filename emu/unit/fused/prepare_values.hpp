// Loops over whole operands before a fused product: codes to float32, smallest and largest value.
#pragma once
#include <cstdint>

namespace numemu::unit {

/// Bit patterns of magnitudes: they order like the numbers, NaN above infinity above all others.
struct Survey {
  std::uint32_t least = 0xffffffff;  ///< of the non-zero values; all ones where there is none
  std::uint32_t most = 0;
};
Survey survey(const float* values, std::int64_t n);

/// IEEE codes (float16) and codes that are the top half of a float32 (bfloat16). NaN stays NaN.
void float16_to_float32(const std::uint16_t* codes, std::int64_t n, float* values);
void bfloat16_to_float32(const std::uint16_t* codes, std::int64_t n, float* values);

}  // namespace numemu::unit
