// Numbers as checkpoints store them, exact in float64.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "formats/codec.hpp"
#include "formats/quantize.hpp"

namespace numemu {

/// Normal powers only.
inline double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// A float16.
inline double half_value(std::uint16_t bits) {
  static const std::vector<float> kValues = [] {
    std::vector<float> values(1 << 16);
    const Format& half = find_format("float16");
    for (std::uint32_t code = 0; code < values.size(); ++code)
      values[code] = nearest_float(decode(half, code));
    return values;
  }();
  return kValues[bits];
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
