// Numbers as checkpoints store them, exact in float64.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>

#include "formats/quantize.hpp"

namespace numemu {

/// Normal powers only.
inline double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// A float16.
inline double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = exponent == 0 ? fraction * power_of_two(-24)
                                   : (fraction + 1024) * power_of_two(exponent - 25);
  if (exponent == 31)
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// A bfloat16.
inline float brain_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// The values of the 16 codes of float4_e2m1fn.
inline const float* e2m1_values() {
  static const float* const kValues = decode_table(find_format("float4_e2m1fn"));
  return kValues;
}

}  // namespace numemu
