// Addends of a fused step: their exponents, and how each is cut below the largest.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "emu/unit/operand.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"
#include "formats/value.hpp"

namespace numemu::unit {

__extension__ typedef __int128 WideInteger;

/// An addend: its number and the exponent it takes part in the alignment with (none: it drops out).
struct Term {
  Value value;
  std::optional<int> exponent;
};

/// Of the leading bit; v is finite.
inline int leading_exponent(const Value& v) {
  return v.exponent + static_cast<int>(std::bit_width(v.significand)) - 1;
}

/// Of one factor: that of its leading bit, but not below the format's smallest normal number.
/// nullptr: two's complement, no lower end.
inline std::optional<int> exponent_of(const Format* format, const Value& v,
                                      const std::optional<int>& of_zero) {
  if (v.kind != Class::finite) return v.kind == Class::zero ? of_zero : std::optional<int>(0);
  const int leading = leading_exponent(v);
  return format == nullptr ? leading : std::max(leading, smallest_normal_exponent(*format));
}

/// The power of two of a scale and, beside it, its significand in units of 2^-fraction.
struct Scale {
  int exponent = 0;
  std::uint64_t significand = 1;
  int fraction = 0;
};
Scale scale_of(const Format&, const Value&);

/// v in units of 2^unit; magnitudes below one unit are cut as the rounding says.
WideInteger cut(const Value& v, int unit, RoundingMode);
/// Whether v is a whole number of units of 2^unit, so that no cut changes it.
bool is_multiple(const Value& v, int unit);
/// The number of units of 2^unit.
Value value_of_sum(WideInteger sum, int unit);

}  // namespace numemu::unit
