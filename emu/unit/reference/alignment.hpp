// Addends of a fused step: their exponents, and how each is cut below the largest.
#pragma once
#include <cstdint>
#include <optional>

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
int leading_exponent(const Value& v);

/// Of one factor: that of its leading bit, but not below the format's smallest normal number.
/// nullptr: two's complement, no lower end.
std::optional<int> exponent_of(const Format*, const Value&, const std::optional<int>& of_zero);

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
