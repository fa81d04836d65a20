// A code to its value: the specification of what every bit pattern means.
#include "formats/codebook.hpp"
#include "formats/codec.hpp"

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

}  // namespace numemu
