// The reference conversion, in integers only: the specification of every fast path.
//
// A value to its code is one rounding of the exact real, then the overflow test. Codes without
// their sign are consecutive integers in the order of the values, so a positive real lies at some
// code `down` plus a fraction of the gap to `down` + 1. Every rounding rule looks at that position
// and the sign only. (A codebook's codes ascend through zero: `down` + 1 or `down` - 1 is then the
// neighbour on the side of the number's sign.)
#include "formats/codec.hpp"

#include <algorithm>
#include <bit>

#include "formats/codebooks/codebook.hpp"
#include "formats/value.hpp"

namespace numemu {
namespace {

Value decode_integer(const Format& f, std::uint64_t code) {
  if (code == 0) return {};
  const bool negative = (code & f.sign_bit()) != 0;
  return {Class::finite, negative, false, 0, negative ? f.code_mask() - code + 1 : code};
}

Value decode_sign(std::uint64_t code) { return {Class::finite, code != 0, false, 0, 1}; }

/// Left-aligned to 52 bits, so that it means the same in every format.
std::uint64_t nan_payload(const Format& f, std::uint64_t fraction) {
  return f.mantissa_bits <= 52 ? fraction << (52 - f.mantissa_bits) : 0;
}

Value decode_floating(const Format& f, std::uint64_t code) {
  const bool negative = (code & f.sign_bit()) != 0;
  const std::uint64_t magnitude = code & ~f.sign_bit();
  const std::uint64_t hidden = std::uint64_t{1} << f.mantissa_bits;
  const std::uint64_t fraction = magnitude & (hidden - 1);
  const auto field = static_cast<std::int32_t>(magnitude >> f.mantissa_bits);

  const bool at_negative_zero = negative && magnitude == 0;
  if (at_negative_zero && f.has_nan() && !f.has_negative_zero() && f.specials != Specials::top)
    return {.kind = Class::nan};
  if (magnitude > f.largest_code()) {
    const bool infinite =
        magnitude == f.infinity_code() && f.has_infinity() && f.specials != Specials::top;
    if (infinite) return {.kind = Class::infinite, .negative = negative};
    return {.kind = Class::nan, .negative = negative, .significand = nan_payload(f, fraction)};
  }

  const bool reads_as_zero =
      (magnitude == 0 && f.has_zero()) || (field == 0 && f.field_zero == FieldZero::flush);
  if (reads_as_zero) return {.kind = Class::zero, .negative = negative && f.has_negative_zero()};
  if (field == 0 && f.field_zero == FieldZero::subnormal)
    return {Class::finite, negative, false, 1 - f.bias - f.mantissa_bits, fraction};
  return {Class::finite, negative, false, field - f.bias - f.mantissa_bits, hidden | fraction};
}

}  // namespace

Value decode(const Format& f, std::uint64_t code) {
  switch (f.kind) {
    case Kind::integer:
      return decode_integer(f, code);
    case Kind::sign:
      return decode_sign(code);
    case Kind::codebook:
      return f.codebook->value(code);
    case Kind::floating:
      break;
  }
  return decode_floating(f, code);
}

namespace {

__extension__ typedef unsigned __int128 Wide;

// `down` + (fraction + s) * 2^-64, where s is 0, or strictly between 0 and 1 if sticky.
struct Position {
  std::int64_t down = 0;
  std::uint64_t fraction = 0;
  bool sticky = false;

  bool inexact() const { return fraction != 0 || sticky; }
};

// The exponent of the leading bit: 2^e <= |v| < 2^(e + 1).
std::int64_t leading_exponent(const Value& v) {
  return std::int64_t{v.exponent} + static_cast<std::int64_t>(std::bit_width(v.significand)) - 1;
}

// Where |v| lies on the grid of all multiples of 2^unit. Needs |v| < 2^(unit + 63); from there to
// 2^(unit + 64) `down` holds the bits of an unsigned number.
Position position_on_grid(const Value& v, std::int64_t unit) {
  const std::int64_t drop = unit - v.exponent;
  if (drop <= 0) return {static_cast<std::int64_t>(v.significand << -drop), 0, v.sticky};
  if (drop >= 128) return {0, 0, true};
  const Wide wide = Wide{v.significand} << 64;  // integer part and fraction, 64 bits each
  const Wide kept = wide >> drop;
  return {static_cast<std::int64_t>(kept >> 64), static_cast<std::uint64_t>(kept),
          v.sticky || kept << drop != wide};
}

// The stochastic variants of the P3109 report: compare the fraction, cut to n bits in the variant's
// way, with r.
bool stochastic_up(const Position& p, const Rounding& rounding, std::uint64_t r) {
  const int n = rounding.random_bits;
  const std::uint64_t one = std::uint64_t{1} << n;
  r &= one - 1;
  std::uint64_t cut = p.fraction >> (64 - n);  // floor(fraction * 2^n)
  if (rounding.variant == StochasticVariant::a) return cut + r >= one;
  if (rounding.variant == StochasticVariant::b)
    return (p.fraction >> (63 - n)) + 2 * r + 1 >= 2 * one;
  const std::uint64_t rest = p.fraction << n, half = std::uint64_t{1} << 63;
  const bool tie = rest == half && !p.sticky;
  const bool cut_is_odd = (cut & 1) != 0;
  const bool tie_up = rounding.variant == StochasticVariant::odd ? !cut_is_odd : cut_is_odd;
  if (tie ? tie_up : rest >= half) ++cut;
  return cut + r >= one;
}

// Away from zero?
bool rounds_up(const Position& p, bool negative, const Rounding& rounding, std::uint32_t random) {
  const std::uint64_t half = std::uint64_t{1} << 63;
  const bool odd = (p.down & 1) != 0;
  switch (rounding.mode) {
    case RoundingMode::rne:
      return p.fraction > half || (p.fraction == half && (p.sticky || odd));
    case RoundingMode::rna:
      return p.fraction >= half;
    case RoundingMode::rtz:
      return false;
    case RoundingMode::rup:
      return p.inexact() && !negative;
    case RoundingMode::rdn:
      return p.inexact() && negative;
    case RoundingMode::rodd:
      return p.inexact() && !odd;
    case RoundingMode::sr:
      return stochastic_up(p, rounding, random);
  }
  return false;
}

// The place of |v| among the codes if normal numbers continued beyond the format's exponents.
// Two binades beyond the lower end and one beyond the upper end cover all cases.
Position position_as_normal(const Format& f, const Value& v) {
  const std::int64_t hidden = std::int64_t{1} << f.mantissa_bits;
  const auto top_field = static_cast<std::int64_t>(f.largest_code() >> f.mantissa_bits);
  const std::int64_t field = leading_exponent(v) + f.bias;
  if (field > top_field) return {(top_field + 1) * hidden, 0, true};
  Position p = position_on_grid(v, leading_exponent(v) - f.mantissa_bits);
  p.down += (std::max<std::int64_t>(field, -2) - 1) * hidden;  // the hidden bit counts one field
  return p;
}

// Where |v| lies among the codes below the smallest normal number; the format has a zero. Without
// subnormals one gap reaches from zero to code 1, and the fraction is |v| / smallest.
Position position_below_normal(const Format& f, const Value& v) {
  if (f.field_zero == FieldZero::normal)
    return position_on_grid(exact_quotient(v, decode(f, 1)), 0);
  return position_on_grid(v, 1 - f.bias - f.mantissa_bits);
}

std::uint64_t with_sign(const Format& f, std::uint64_t magnitude, bool negative) {
  if (!negative || (magnitude == 0 && !f.has_negative_zero())) return magnitude;
  if (f.kind == Kind::integer) return (f.code_mask() - magnitude + 1) & f.code_mask();
  return magnitude | f.sign_bit();
}

// A negative number in a format without sign.
Encoded refused_sign(const Format& f) { return {f.has_nan() ? f.nan_code() : 0, kInvalid}; }

// |v| is an infinity or rounds beyond the largest finite value.
Encoded overflowed(const Format& f, const Value& v, const Rounding& rounding, Overflow overflow) {
  const bool infinite = v.kind == Class::infinite;
  if (infinite && overflow != Overflow::saturate && f.has_infinity())
    return {f.infinity_code(v.negative), 0};
  const RoundingMode mode = rounding.mode;
  const bool stops_at_largest = mode == RoundingMode::rtz || mode == RoundingMode::rodd ||
                                mode == (v.negative ? RoundingMode::rup : RoundingMode::rdn);
  std::uint64_t code = f.largest_code(v.negative);
  if (overflow == Overflow::ieee && (infinite || !stops_at_largest)) {
    if (f.has_infinity()) {
      code = f.infinity_code(v.negative);
    } else if (f.has_nan()) {
      code = f.nan_code(v.negative);
    }
  }
  return {code, kOverflow | kInexact};
}

// The result of rounding before the sign and the upper end of the format matter.
struct Rounded {
  std::uint64_t magnitude = 0;
  bool inexact = false;
  bool tiny = false;
  bool beyond = false;  // every code
};

Rounded round_integer(const Format&, const Value& v, const Rounding& rounding,
                      std::uint32_t random) {
  if (leading_exponent(v) >= 64) return {.beyond = true};
  const Position p = position_on_grid(v, 0);
  return {static_cast<std::uint64_t>(p.down) + rounds_up(p, v.negative, rounding, random),
          p.inexact(), false};
}

Rounded round_floating(const Format& f, const Value& v, const Rounding& rounding,
                       std::uint32_t random) {
  const auto round = [&](const Position& p) {
    return p.down + rounds_up(p, v.negative, rounding, random);
  };
  std::int64_t first_normal = std::int64_t{1} << f.mantissa_bits;  // code of the smallest normal
  if (f.field_zero == FieldZero::normal) first_normal = 1;
  if (f.field_zero == FieldZero::scale) first_normal = 0;
  const Position normal = position_as_normal(f, v);
  // Tininess is detected after rounding, as if exponents had no lower end (IEEE 754-2019, 7.5).
  const std::int64_t as_normal = round(normal);
  const bool tiny = as_normal < first_normal;
  if (normal.down >= first_normal)
    return {static_cast<std::uint64_t>(as_normal), normal.inexact(), tiny};
  if (!f.has_zero()) return {0, true, tiny};
  const Position below = position_below_normal(f, v);
  const auto magnitude = static_cast<std::uint64_t>(round(below));
  const bool flushed = f.field_zero == FieldZero::flush && magnitude >> f.mantissa_bits == 0;
  return {flushed ? 0 : magnitude, flushed || below.inexact(), tiny};
}

Encoded encode_finite(const Format& f, const Value& v, const Rounding& rounding, Overflow overflow,
                      std::uint32_t random) {
  const bool integer = f.kind == Kind::integer;
  const Rounded rounded = (integer ? round_integer : round_floating)(f, v, rounding, random);
  const bool is_zero = rounded.magnitude == 0 && !rounded.beyond && f.has_zero();
  if (v.negative && !f.is_signed && !is_zero) return refused_sign(f);
  // Integers reach one further on the negative side, where code and magnitude coincide.
  if (rounded.beyond || rounded.magnitude > f.largest_code(integer && v.negative))
    return overflowed(f, v, rounding, overflow);
  const int flags = rounded.inexact ? kInexact | (rounded.tiny ? kUnderflow : 0) : 0;
  return {with_sign(f, rounded.magnitude, v.negative), static_cast<std::uint8_t>(flags)};
}

// The sign alone; nothing is rounded, so every finite magnitude but 1 is inexact and none
// overflows.
Encoded encode_sign(const Format& f, const Value& v) {
  const bool zero = v.kind == Class::zero;
  const bool one =
      !zero && !v.sticky && std::has_single_bit(v.significand) && leading_exponent(v) == 0;
  return {f.largest_code(v.negative && !zero), one ? std::uint8_t{0} : std::uint8_t{kInexact}};
}

// Away from zero is the side of the number's sign (zero counts as positive) even where a gap
// reaches across zero; there "toward zero" means as zero itself would round.
Encoded encode_codebook(const Format& f, const Value& v, const Rounding& rounding,
                        std::uint32_t random) {
  const bool negative = v.negative && v.kind != Class::zero;
  const CodebookPlace place = f.codebook->locate(v);
  if (place.outside) return {f.largest_code(place.below), kOverflow | kInexact};
  const Position p{place.down, place.fraction, place.sticky};
  if (!p.inexact()) return {static_cast<std::uint64_t>(p.down), 0};
  if (place.across_zero && rounding.mode == RoundingMode::rtz)
    return encode_codebook(f, {}, {.mode = RoundingMode::rne}, 0);
  const int step = rounds_up(p, negative, rounding, random) ? (negative ? -1 : 1) : 0;
  return {static_cast<std::uint64_t>(p.down + step), kInexact};
}

}  // namespace

Encoded encode(const Format& f, const Value& v, const Rounding& rounding, Overflow overflow,
               std::uint32_t random) {
  if (v.kind == Class::nan) {
    if (!f.has_nan()) return {f.largest_code(), kInvalid};
    return {f.nan_code(v.negative), is_signalling(v) ? std::uint8_t{kInvalid} : std::uint8_t{0}};
  }
  if (v.kind == Class::infinite)
    return v.negative && !f.is_signed ? refused_sign(f) : overflowed(f, v, rounding, overflow);
  if (f.kind == Kind::sign) return encode_sign(f, v);
  if (f.kind == Kind::codebook) return encode_codebook(f, v, rounding, random);
  if (v.kind == Class::finite) return encode_finite(f, v, rounding, overflow, random);
  if (!f.has_zero()) return {0, kInexact | kUnderflow};
  return {with_sign(f, 0, v.negative), 0};
}

float nearest_float(const Value& value) {
  return std::bit_cast<float>(
      static_cast<std::uint32_t>(encode(float32(), value, {}, Overflow::ieee).code));
}

}  // namespace numemu
