// Codes of the elements to integers and back; every rounding of the check happens in encode().
#include "tests/oracle/cuda/replay/number.hpp"

namespace numemu::oracle::recording::replay {
namespace {

constexpr std::uint64_t ones(int bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

int bit_length(std::uint64_t x) { return x == 0 ? 0 : 64 - __builtin_clzll(x); }

std::uint64_t sign_bit(const ElementInfo& e, bool negative) {
  return negative ? std::uint64_t{1} << (e.bits - 1) : 0;
}

/// magnitude * 2^-shift.
std::uint64_t shifted(std::uint64_t magnitude, int shift, Rounding rounding) {
  if (shift <= 0) return magnitude << -shift;
  if (shift > 64) return 0;
  const std::uint64_t whole = shift == 64 ? 0 : magnitude >> shift;
  if (rounding == Rounding::toward_zero) return whole;
  const std::uint64_t rest = magnitude & ones(shift), half = std::uint64_t{1} << (shift - 1);
  return whole + (rest > half || (rest == half && (whole & 1) != 0) ? 1 : 0);
}

}  // namespace

Number decode(const ElementInfo& e, std::uint64_t code) {
  // tf32 is in the top of a float32.
  const int low = e.bits == 32 ? 31 - e.exponent_bits - e.mantissa_bits : 0;
  const std::uint64_t fields = code >> low & ones(e.exponent_bits + e.mantissa_bits);
  const std::uint64_t mantissa = fields & ones(e.mantissa_bits);
  const auto biased = static_cast<int>(fields >> e.mantissa_bits);
  Number n;
  n.negative = e.has_sign && (code >> (e.bits - 1) & 1) != 0;
  const bool top = biased == static_cast<int>(ones(e.exponent_bits));
  if (e.specials == Specials::exponent) {
    if (top) n.kind = Class::nan;
    n.significand = 1;
    n.exponent = biased - e.bias;
    return n;
  }
  if (top && e.specials == Specials::ieee) {
    n.kind = mantissa == 0 ? Class::infinite : Class::nan;
    n.significand = mantissa;
    return n;
  }
  if (top && e.specials == Specials::one_nan && mantissa == ones(e.mantissa_bits)) {
    n.kind = Class::nan;
    n.significand = mantissa;
    return n;
  }
  n.significand = biased == 0 ? mantissa : mantissa | std::uint64_t{1} << e.mantissa_bits;
  n.exponent = (biased == 0 ? 1 : biased) - e.bias;
  if (n.significand == 0) n.exponent = kZeroExponent;
  return n;
}

std::int64_t decode_integer(const ElementInfo& e, std::uint64_t code) {
  const auto value = static_cast<std::int64_t>(code & ones(e.bits));
  const bool negative = e.has_sign && (code >> (e.bits - 1) & 1) != 0;
  return negative ? value - (std::int64_t{1} << e.bits) : value;
}

std::uint64_t encode(const Writing& to, bool negative, std::uint64_t magnitude, int exponent) {
  const ElementInfo e = info(to.element);
  const std::uint64_t sign = sign_bit(e, negative);
  const std::uint64_t zero = to.keeps_zero_sign ? sign : 0;
  if (magnitude == 0) return zero;
  const int least = 1 - e.bias;
  const int top = exponent + bit_length(magnitude) - 1;
  const int binade = top > least ? top : least;
  if (binade > e.bias + 1) {
    if (!to.largest_finite) return infinity_code(to.element, negative);
    return infinity_code(to.element, negative) - (std::uint64_t{1} << (e.mantissa_bits - to.kept));
  }
  const std::uint64_t kept = shifted(magnitude, binade - to.kept - exponent, to.rounding);
  if (kept == 0) return zero;
  // The leading bit of `kept` adds one to the biased exponent; a carry of the rounding adds
  // another.
  const std::uint64_t code = ((static_cast<std::uint64_t>(binade - least) << to.kept) + kept)
                             << (e.mantissa_bits - to.kept);
  if (to.flushes && code >> e.mantissa_bits == 0) return sign;
  const std::uint64_t infinity = infinity_code(to.element, false);
  if (code < infinity) return sign | code;
  const std::uint64_t last = infinity - (std::uint64_t{1} << (e.mantissa_bits - to.kept));
  return sign | (to.largest_finite ? last : infinity);
}

std::uint64_t infinity_code(Element element, bool negative) {
  const ElementInfo e = info(element);
  return ones(e.exponent_bits) << e.mantissa_bits | sign_bit(e, negative);
}

std::uint64_t canonical_nan(Element element) {
  return element == Element::f64 ? 0xfff8000000000000 : ones(info(element).bits - 1);
}

bool is_nan(Element element, std::uint64_t code) {
  return !is_integer(element) && decode(info(element), code).kind == Class::nan;
}

bool is_zero(Element element, std::uint64_t code) {
  return !is_integer(element) && (code & ones(info(element).bits - 1)) == 0;
}

}  // namespace numemu::oracle::recording::replay
