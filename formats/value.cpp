// Host numbers to exact values and back, and the quotient that quantization rounds.
#include "formats/value.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "formats/error.hpp"

namespace numemu {
namespace {

__extension__ typedef unsigned __int128 Wide;

// An IEEE number of `mantissa_bits` and `exponent_bits` from its bits.
Value from_bits(std::uint64_t bits, int mantissa_bits, int exponent_bits) {
  const std::uint64_t hidden = std::uint64_t{1} << mantissa_bits;
  const int all_ones = (1 << exponent_bits) - 1, bias = all_ones >> 1;
  const std::uint64_t fraction = bits & (hidden - 1);
  const int field = static_cast<int>(bits >> mantissa_bits) & all_ones;
  Value v{.negative = ((bits >> (mantissa_bits + exponent_bits)) & 1) != 0};
  if (field == all_ones) {
    v.kind = fraction == 0 ? Class::infinite : Class::nan;
    v.significand = fraction << (52 - mantissa_bits);
  } else if (field != 0 || fraction != 0) {
    v.kind = Class::finite;
    v.exponent = (field == 0 ? 1 : field) - bias - mantissa_bits;
    v.significand = field == 0 ? fraction : hidden | fraction;
  }
  return v;
}

}  // namespace

Value value_of(float x) { return from_bits(std::bit_cast<std::uint32_t>(x), 23, 8); }
Value value_of(double x) { return from_bits(std::bit_cast<std::uint64_t>(x), 52, 11); }

double to_double(const Value& v) {
  constexpr std::uint64_t kInfinity = std::uint64_t{2047} << 52;
  constexpr std::uint64_t kHidden = std::uint64_t{1} << 52;
  const std::uint64_t sign = std::uint64_t{v.negative} << 63;
  switch (v.kind) {
    case Class::zero:
      return std::bit_cast<double>(sign);
    case Class::infinite:
      return std::bit_cast<double>(sign | kInfinity);
    case Class::nan:
      return std::bit_cast<double>(sign | kInfinity | kHidden >> 1);
    case Class::finite:
      break;
  }
  const int trailing = std::countr_zero(v.significand);
  std::uint64_t significand = v.significand >> trailing;
  std::int64_t exponent = std::int64_t{v.exponent} + trailing;
  const int width = std::bit_width(significand);
  // Left-align to 53 bits, but not below the unit of the subnormals.
  std::int64_t shift = 53 - width;
  if (exponent - shift < -1074) shift = exponent + 1074;
  if (v.sticky || width > 53 || shift < 0 || exponent + width > 1024)
    throw Error("a value of " + std::to_string(width) + " bits times 2^" +
                std::to_string(exponent) + " is not exact in a float64");
  significand <<= shift;
  exponent -= shift;
  const std::uint64_t field =
      significand < kHidden ? 0 : static_cast<std::uint64_t>(exponent + 1075);
  return std::bit_cast<double>(sign | field << 52 | (significand & (kHidden - 1)));
}

// Both significands are left-aligned first, so that the integer quotient has 63 or 64 bits. A
// sticky dividend lies strictly between n and n + 1 units: then n is divided unscaled, because no
// multiple of the divisor lies in between (floor(real / d) = floor(n / d)), and the quotient keeps
// 64 bits less the divisor's width.
Value exact_quotient(const Value& x, const Value& s) {
  Value q = x;
  if (x.kind != Class::finite) return q;
  const int up = std::countl_zero(x.significand);
  const int down = std::countr_zero(s.significand);
  const std::uint64_t divisor = s.significand >> down;
  std::int64_t exponent = std::int64_t{x.exponent} - s.exponent - down;
  Wide dividend = x.significand;
  if (!x.sticky) {
    const int scale = up + std::bit_width(divisor) - 1;
    dividend <<= scale;
    exponent -= scale;
  }
  q.significand = static_cast<std::uint64_t>(dividend / divisor);
  q.sticky = x.sticky || dividend % divisor != 0;
  // The ends of the int32 range mean only "huge" and "tiny".
  using Limits = std::numeric_limits<std::int32_t>;
  q.exponent =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(exponent, Limits::min(), Limits::max()));
  return q;
}

Value shortest(Value v) {
  if (v.kind != Class::finite) return v;
  const int zeros = std::countr_zero(v.significand);
  v.significand >>= zeros;
  v.exponent += zeros;
  return v;
}

int significant_bits(const Value& v) {
  return v.kind == Class::finite ? std::bit_width(v.significand) - std::countr_zero(v.significand)
                                 : 0;
}

Value operator-(Value v) {
  v.negative = !v.negative;
  return v;
}

}  // namespace numemu
