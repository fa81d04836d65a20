#include "tests/oracle/cuda/conversions/round.hpp"

#include <algorithm>

namespace numemu::oracle::recording {
namespace {

/// Codes of tf32 sit above 13 bits of their container.
int container_shift(Element e) { return e == Element::tf32 ? 13 : 0; }

int bit_length(std::uint64_t x) {
  int n = 0;
  for (; x != 0; x >>= 1) ++n;
  return n;
}

bool goes_up(std::uint64_t significand, int dropped, const RoundTo& to) {
  // A significand has 24 bits: dropping 60 or more leaves the same zero and the same rest.
  const int shift = std::min(dropped, 60);
  const std::uint64_t kept = significand >> shift, rest = significand - (kept << shift);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  switch (to.mode) {
    case CvtRounding::rn:
      return rest > half || (rest == half && (kept & 1) != 0);
    case CvtRounding::rna:
      return rest >= half;
    case CvtRounding::rp:
      return rest != 0;
    case CvtRounding::rs: {
      const int n = to.random_bits;
      const std::uint64_t bits =
          dropped >= n ? rest >> std::min(dropped - n, 60) : rest << (n - dropped);
      return bits + (to.random & ((1U << n) - 1)) >= std::uint64_t{1} << n;
    }
    default:
      return false;
  }
}

}  // namespace

Real real_of(Element e, std::uint32_t code) {
  const ElementInfo f = info(e);
  code >>= container_shift(e);
  const std::uint32_t mantissa = code & ((1U << f.mantissa_bits) - 1);
  const std::uint32_t fields = (1U << f.exponent_bits) - 1;
  const std::uint32_t field = code >> f.mantissa_bits & fields;
  Real x;
  x.negative = f.has_sign && (code >> (f.exponent_bits + f.mantissa_bits) & 1) != 0;
  x.payload = mantissa;
  const bool all_ones = mantissa == (1U << f.mantissa_bits) - 1;
  if (field == fields && f.specials == Specials::ieee)
    x.kind = mantissa == 0 ? NumberKind::infinite : NumberKind::nan;
  if (field == fields && (f.specials == Specials::one_nan || f.specials == Specials::exponent) &&
      all_ones)
    x.kind = NumberKind::nan;
  const bool subnormal = field == 0 && f.specials != Specials::exponent;
  x.significand = subnormal ? mantissa : mantissa | 1U << f.mantissa_bits;
  x.exponent = static_cast<int>(field) + (subnormal ? 1 : 0) - f.bias - f.mantissa_bits;
  return x;
}

Ends ends_of(Element e) {
  const ElementInfo f = info(e);
  const std::uint32_t ones = (1U << (f.exponent_bits + f.mantissa_bits)) - 1;
  const std::uint32_t sign = f.has_sign ? ones + 1 : 0;
  switch (f.specials) {
    case Specials::ieee: {
      const std::uint32_t infinity = ones - ((1U << f.mantissa_bits) - 1);
      return {infinity - 1, infinity, sign};
    }
    case Specials::one_nan:
    case Specials::exponent:
      return {ones - 1, ones, sign};
    default:
      return {ones, ones, sign};
  }
}

std::uint32_t rounded_magnitude(Element e, const Real& x, const RoundTo& to) {
  if (x.significand == 0) return 0;
  const ElementInfo f = info(e);
  const bool scale = f.specials == Specials::exponent;
  // The spacing at x: of its own binade, but never finer than the least spacing of the format.
  const int least = (scale ? 0 : 1) - f.bias - f.mantissa_bits;
  const int spacing = std::max(bit_length(x.significand) - 1 + x.exponent - f.mantissa_bits, least);
  const int dropped = spacing - x.exponent;
  std::uint64_t kept = x.significand;
  if (dropped <= 0)
    kept <<= -dropped;
  else
    kept = (kept >> std::min(dropped, 60)) + (goes_up(x.significand, dropped, to) ? 1 : 0);
  const std::uint64_t code =
      (static_cast<std::uint64_t>(spacing - least) << f.mantissa_bits) + kept;
  // A scale has no zero: its code 0 is the power 2^-127, which everything below takes.
  if (scale) return static_cast<std::uint32_t>(code == 0 ? 0 : code - 1);
  return static_cast<std::uint32_t>(code);
}

}  // namespace numemu::oracle::recording
