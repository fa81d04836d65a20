// Exponents and cuts of addends, in 128-bit integers.
#include "emu/unit/reference/alignment.hpp"

#include <algorithm>
#include <bit>

namespace numemu::unit {

Scale scale_of(const Format& format, const Value& v) {
  if (v.kind == Class::zero) return {smallest_normal_exponent(format), 0, 0};
  if (format.mantissa_bits == 0) return {leading_exponent(v), 1, 0};
  const int exponent = std::max(leading_exponent(v), smallest_normal_exponent(format));
  return {exponent, v.significand, exponent - v.exponent};
}

WideInteger cut(const Value& v, int unit, RoundingMode rounding) {
  if (v.kind != Class::finite) return 0;
  const int shift = v.exponent - unit;
  const WideInteger significand = static_cast<WideInteger>(v.significand);
  if (shift >= 0) return v.negative ? -(significand << shift) : significand << shift;
  const int down = std::min(-shift, 127);
  WideInteger kept = significand >> down;
  const WideInteger rest = significand - (kept << down);
  if (rest != 0) {
    const WideInteger half = WideInteger{1} << (down - 1);
    const bool up =
        (rounding == RoundingMode::rdn && v.negative) ||
        (rounding == RoundingMode::rup && !v.negative) ||
        (rounding == RoundingMode::rna && rest >= half) ||
        (rounding == RoundingMode::rne && (rest > half || (rest == half && (kept & 1) != 0))) ||
        (rounding == RoundingMode::rodd && (kept & 1) == 0);
    kept += up;
  }
  return v.negative ? -kept : kept;
}

bool is_multiple(const Value& v, int unit) {
  return v.kind != Class::finite ||
         (!v.sticky && v.exponent + std::countr_zero(v.significand) >= unit);
}

Value value_of_sum(WideInteger sum, int unit) {
  if (sum == 0) return {};
  const bool negative = sum < 0;
  auto magnitude = static_cast<unsigned __int128>(negative ? -sum : sum);
  Value v{Class::finite, negative, false, unit, 0};
  while ((magnitude >> 64) != 0) {
    v.sticky |= (magnitude & 1) != 0;
    magnitude >>= 1;
    ++v.exponent;
  }
  v.significand = static_cast<std::uint64_t>(magnitude);
  return v;
}

}  // namespace numemu::unit
