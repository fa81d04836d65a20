// Registers: floating ones by the codec, two's complement ones by integer shifts.
#include "emu/unit/reference/register.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/operand.hpp"
#include "formats/codec.hpp"

namespace numemu::unit {
namespace {

__extension__ typedef __int128 SignedWide;

int width(const Value& v) { return static_cast<int>(std::bit_width(v.significand)); }

/// |v| < 2^exponent, exactly.
bool below_power(const Value& v, int exponent) { return v.exponent + width(v) <= exponent; }

/// Whether v stays below the smallest normal number: before rounding, or (x86, and the default)
/// after rounding to nearest even as if the exponent had no lower end. Then the midpoint below
/// 2^e, which is 2^e - 2^(e - M - 2), already reaches 2^e.
bool tiny(const Format& format, const Value& v, bool before_rounding) {
  if (v.kind != Class::finite) return false;
  const int smallest = smallest_normal_exponent(format);
  if (!below_power(v, smallest)) return false;
  if (before_rounding || below_power(v, smallest - 1)) return true;
  const int lead = std::countl_zero(v.significand);
  const std::uint64_t midpoint = ~std::uint64_t{0} << (64 - format.mantissa_bits - 2);
  return v.significand << lead < midpoint;
}

/// v as a whole number of units of 2^-fraction, rounded; magnitudes beyond 2^62 stay there (they
/// are beyond every register). Rounding looks at the fraction and at the last whole bit, so that
/// only the low whole bits go through the codec, which holds 32 of them.
std::int64_t whole(const Register& r, const Value& v, std::uint32_t random) {
  constexpr std::int64_t kBeyond = std::int64_t{1} << 62;
  constexpr int kLowBits = 8;
  if (v.kind == Class::zero || v.kind == Class::nan) return 0;
  const std::int64_t top = std::int64_t{v.exponent} + width(v) + r.fraction;
  if (v.kind == Class::infinite || top > 62) return v.negative ? -kBeyond : kBeyond;
  Value low = v;
  low.exponent += r.fraction;
  std::int64_t high = 0;  // whole bits from kLowBits on
  if (const int position = kLowBits - low.exponent; position <= 0) {
    high = static_cast<std::int64_t>(v.significand << -position);
    low.significand = 0;
  } else if (position < 64) {
    high = static_cast<std::int64_t>(v.significand >> position);
    low.significand &= (std::uint64_t{1} << position) - 1;
  }
  high <<= kLowBits;
  if (low.significand == 0 && !low.sticky) return v.negative ? -high : high;
  Format integers;
  integers.kind = Kind::integer;
  integers.bits = kLowBits + 2;
  const std::uint64_t code = encode(integers, low, r.rounding, Overflow::saturate, random).code;
  const int unused = 64 - integers.bits;
  const std::int64_t rounded = static_cast<std::int64_t>(code << unused) >> unused;
  return (v.negative ? -high : high) + rounded;
}

Value from_whole(const Register& r, std::int64_t n) {
  if (n == 0) return {};
  const auto magnitude = n < 0 ? ~static_cast<std::uint64_t>(n) + 1 : static_cast<std::uint64_t>(n);
  return {Class::finite, n < 0, false, -r.fraction, magnitude};
}

/// Wraps to `bits` bits by sign extension.
std::int64_t wrapped(std::int64_t n, int bits) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(n) << (64 - bits)) >> (64 - bits);
}

/// A sum of products may exceed 64 bits before it wraps: only its low bits matter then.
std::int64_t low_bits(const Register& r, const Value& v) {
  const int shift = v.exponent + r.fraction;
  if (shift >= 64) return 0;
  const auto magnitude =
      static_cast<std::uint64_t>(SignedWide{1} * v.significand << std::max(shift, 0));
  return static_cast<std::int64_t>(v.negative ? ~magnitude + 1 : magnitude);
}

Value round_integer(const Register& r, const Value& v, std::uint32_t random, std::uint8_t* flags) {
  const bool exact = v.kind == Class::finite && !v.sticky &&
                     v.exponent + std::countr_zero(v.significand) + r.fraction >= 0 &&
                     v.exponent + r.fraction >= 0;
  if (r.integer == IntegerOverflow::wrap) {
    return from_whole(r, wrapped(exact ? low_bits(r, v) : whole(r, v, random), r.bits));
  }
  const std::int64_t most = (std::int64_t{1} << (r.bits - 1)) - 1;
  const std::int64_t rounded = whole(r, v, random), held = std::clamp(rounded, -most - 1, most);
  if (flags != nullptr && held != rounded) *flags |= kSaturated;
  return from_whole(r, held);
}

/// The container of a format that has one: its bytes.
int bytes_of(const Format& format) {
  const int bits = format.bits + format.container_shift;
  return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

}  // namespace

Value round_to(const Register& r, const Value& exact, std::uint32_t random, std::uint8_t* flags) {
  if (r.format == nullptr) return round_integer(r, exact, random, flags);
  if (exact.kind == Class::nan) return exact;
  const Encoded encoded = encode(*r.format, exact, r.rounding, r.overflow, random);
  if (flags != nullptr) *flags |= encoded.flags;
  const Value rounded = decode(*r.format, encoded.code);
  if (!r.overflow_to_infinity || exact.kind != Class::finite) return rounded;
  // Rounding toward zero never leaves the largest finite value by itself.
  const Value largest = decode(*r.format, r.format->largest_code(exact.negative));
  const int top = largest.exponent + width(largest);
  const bool beyond = exact.exponent + width(exact) > top;
  return beyond ? Value{.kind = Class::infinite, .negative = exact.negative} : rounded;
}

Value within(const Register& r, const ShortEnds* ends, const Value& held) {
  if (ends == nullptr || held.kind != Class::finite ||
      !(held.negative ? ends->lowest : ends->largest))
    return held;
  if (r.format != nullptr) {
    if (r.overflow != Overflow::saturate) return held;
    const std::uint64_t end = r.format->largest_code(held.negative);
    return encode(*r.format, held, {}, Overflow::saturate).code == end ? decode(*r.format, end - 1)
                                                                       : held;
  }
  if (r.integer == IntegerOverflow::wrap) return held;
  const std::int64_t most = (std::int64_t{1} << (r.bits - 1)) - 1;
  return from_whole(r, std::clamp(whole(r, held, 0), -most - 1 + (ends->lowest ? 1 : 0),
                                  most - (ends->largest ? 1 : 0)));
}

Value round_to(const Register& r, const Subnormals& subnormals, const Value& exact,
               std::uint32_t random, std::uint8_t* flags) {
  if (subnormals.flush_results && r.format != nullptr &&
      tiny(*r.format, exact, subnormals.tiny_before_rounding)) {
    if (flags != nullptr) *flags |= kUnderflow | kInexact;
    return {.kind = Class::zero, .negative = exact.negative};
  }
  return round_to(r, exact, random, flags);
}

Value flushed(const Format& format, const Value& v, bool to_plus_zero) {
  if (v.kind == Class::nan || v.kind == Class::infinite) return v;
  if (v.kind == Class::finite && !below_power(v, smallest_normal_exponent(format))) return v;
  return {.kind = Class::zero, .negative = v.negative && !to_plus_zero};
}

int bytes_of(const Format* format, const Register& r) {
  if (format != nullptr) return bytes_of(*format);
  return r.bits <= 8 ? 1 : r.bits <= 16 ? 2 : 4;
}

Value read_element(const Format* format, const Register& r, const void* array, std::int64_t index) {
  const int bytes = bytes_of(format, r);
  std::uint64_t code = 0;
  std::memcpy(&code, static_cast<const char*>(array) + index * bytes,
              static_cast<std::size_t>(bytes));
  if (format != nullptr) code = code >> format->container_shift & format->code_mask();
  return element_value(format, r, code);
}

Value element_value(const Format* format, const Register& r, std::uint64_t code) {
  return format != nullptr ? decode(*format, code)
                           : from_whole(r, wrapped(static_cast<std::int64_t>(code), r.bits));
}

std::uint64_t code_of(const Format* format, const Register& r, const Value& v,
                      std::uint64_t nan_code) {
  if (v.kind == Class::nan) return nan_code;
  if (format != nullptr) return encode(*format, v, Rounding{}, Overflow::ieee).code;
  const auto n = static_cast<std::uint64_t>(whole(r, v, 0));
  return r.bits == 64 ? n : n & ((std::uint64_t{1} << r.bits) - 1);
}

std::uint64_t x86_nan(const Format& format, const Value& nan, std::uint64_t default_code) {
  constexpr int kPayloadBits = 52;
  if (nan.significand == 0) return default_code;
  const std::uint64_t quiet = std::uint64_t{1} << (format.mantissa_bits - 1);
  const std::uint64_t fraction = nan.significand >> (kPayloadBits - format.mantissa_bits);
  return (nan.negative ? format.sign_bit() : 0) | format.infinity_code() | quiet | fraction;
}

std::optional<std::uint64_t> register_code(const UnitDescription& u, const Register& r,
                                           const Value& v) {
  const Format* format = r.format;
  if (v.kind != Class::nan || format == nullptr) return code_of(format, r, v, 0);
  if (!format->has_nan()) return std::nullopt;
  // nan_code is a code of D, which may be wider than the register.
  const Format* const d = result_format(u);
  const bool same = d != nullptr && d->name == format->name;
  const std::uint64_t usual = same ? u.nan_code : format->nan_code();
  return u.nan == NanRule::x86 ? x86_nan(*format, v, usual) : usual;
}

void store_code(const Format* format, const Register& r, std::uint64_t code, void* array,
                std::int64_t index) {
  const int bytes = bytes_of(format, r);
  if (format != nullptr) {
    code <<= format->container_shift;
  } else if (bytes == 4) {
    code = static_cast<std::uint64_t>(wrapped(static_cast<std::int64_t>(code), r.bits));
  }
  std::memcpy(static_cast<char*>(array) + index * bytes, &code, static_cast<std::size_t>(bytes));
}

}  // namespace numemu::unit
