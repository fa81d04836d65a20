// Shared by the rules for power-of-two scales: leading bits of exact numbers, and the range of s.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "formats/scaling/scale_rule.hpp"
#include "formats/value.hpp"

namespace numemu {

/// A positive number as mantissa * 2^(exponent - 23), 2^23 <= mantissa < 2^24: exponent is
/// floor(log2), read from the bits. Exact for float32 numbers and elements of at most 16 bits.
struct Leading {
  std::int32_t exponent = 0;
  std::uint64_t mantissa = 0;
};

inline Leading leading(const Value& v) {
  const auto width = static_cast<int>(std::bit_width(v.significand));
  return {v.exponent + width - 1,
          width <= 24 ? v.significand << (24 - width) : v.significand >> (width - 24)};
}

/// The exponents s that the scale format can store.
struct ExponentRange {
  std::int32_t lowest, highest;
};
inline ExponentRange exponent_range(const Format& scale) {
  return {-scale.bias, static_cast<std::int32_t>(scale.largest_code()) - scale.bias};
}

/// exponents[b] = rule(amax of block b) clamped to the range; its lower end where amax is 0.
template <class Rule>
void for_each_block(const ExponentRequest& r, const Rule& rule) {
  const ExponentRange range = exponent_range(*r.format->scale);
  for (std::int64_t b = 0; b < r.blocks; ++b) {
    const Value amax = value_of(r.amax[b]);
    r.exponents[b] = amax.kind == Class::zero
                         ? range.lowest
                         : std::clamp(rule(leading(amax)), range.lowest, range.highest);
  }
}

}  // namespace numemu
