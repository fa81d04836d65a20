// VCVTNEPS2BF16 in terms of the project's conversion float32 -> bfloat16.
#pragma once
#include <cstdint>

#include "formats/codec.hpp"

namespace numemu::oracle::mma {

/// Nearest even, subnormal inputs flushed to a zero of their sign, a NaN its upper half made quiet
/// (measured: every MXCSR gives the same).
inline std::uint16_t bfloat16_of(std::uint32_t x) {
  constexpr std::uint32_t kSign = 0x80000000, kInfinity = 0x7f800000, kQuiet = 0x40;
  if ((x & ~kSign) > kInfinity) return static_cast<std::uint16_t>(x >> 16 | kQuiet);
  if ((x & kInfinity) == 0) x &= kSign;
  static const Format &from = find_format("float32"), &to = find_format("bfloat16");
  return static_cast<std::uint16_t>(encode(to, decode(from, x), {}, Overflow::ieee).code);
}

}  // namespace numemu::oracle::mma
