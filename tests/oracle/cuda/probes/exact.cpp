// Codes of exact numbers, in integers only.
#include "tests/oracle/cuda/probes/exact.hpp"

namespace numemu::oracle::recording::probing {
namespace {

/// tf32 is in the top 19 bits of its container.
int container_shift(Element e) { return e == Element::tf32 ? 13 : 0; }

int field_bits(Element e) { return info(e).exponent_bits + info(e).mantissa_bits; }

std::uint64_t ones(int bits) { return (std::uint64_t{1} << bits) - 1; }

std::uint64_t with_sign(Element e, bool negative, std::uint64_t magnitude) {
  const std::uint64_t sign = negative ? std::uint64_t{1} << field_bits(e) : 0;
  return (sign | magnitude) << container_shift(e);
}

/// Magnitude bits of the largest finite number.
std::uint64_t largest_magnitude(Element e) {
  const ElementInfo type = info(e);
  if (type.specials == Specials::ieee) return (ones(type.exponent_bits) << type.mantissa_bits) - 1;
  return ones(field_bits(e)) - (type.specials == Specials::one_nan ? 1 : 0);
}

Code integer_code(Element e, Exact x) {
  const ElementInfo type = info(e);
  if (x.exponent < 0 || x.exponent > 31) return {};
  const std::uint64_t magnitude = x.significand << x.exponent;
  const std::uint64_t limit =
      x.negative ? std::uint64_t{1} << type.mantissa_bits : ones(type.mantissa_bits);
  if (magnitude > limit || (x.negative && (!type.has_sign || magnitude == 0))) return {};
  return (x.negative ? ~magnitude + 1 : magnitude) & ones(type.bits);
}

}  // namespace

int leading_exponent(Exact x) {
  int exponent = x.exponent - 1;
  for (; x.significand != 0; x.significand >>= 1) ++exponent;
  return exponent;
}

int least_exponent(Element e) { return 1 - info(e).bias; }

int greatest_exponent(Element e) {
  return static_cast<int>(largest_magnitude(e) >> info(e).mantissa_bits) - info(e).bias;
}

int subnormal_exponent(Element e) { return least_exponent(e) - info(e).mantissa_bits; }

Exact largest(Element e) {
  const ElementInfo type = info(e);
  if (is_integer(e)) return scaled(ones(type.mantissa_bits), 0);
  const std::uint64_t mantissa = largest_magnitude(e) & ones(type.mantissa_bits);
  return scaled(mantissa | (std::uint64_t{1} << type.mantissa_bits),
                greatest_exponent(e) - type.mantissa_bits);
}

Code code_of(Element e, Exact x) {
  const ElementInfo type = info(e);
  if (is_integer(e)) return integer_code(e, x);
  if (x.negative && !type.has_sign) return {};
  if (x.significand == 0) return with_sign(e, x.negative, 0);
  const int leading = leading_exponent(x);
  const bool normal = leading >= least_exponent(e);
  const int last = (normal ? leading : least_exponent(e)) - type.mantissa_bits;
  std::uint64_t mantissa = x.significand;
  if (leading > greatest_exponent(e) || leading < last) return {};
  if (x.exponent < last) {
    if ((mantissa & ones(last - x.exponent)) != 0) return {};
    mantissa >>= last - x.exponent;
  } else {
    mantissa <<= x.exponent - last;
  }
  const std::uint64_t field = normal ? static_cast<std::uint64_t>(leading + type.bias) : 0;
  const std::uint64_t magnitude =
      (field << type.mantissa_bits) | (mantissa & ones(type.mantissa_bits));
  if (magnitude > largest_magnitude(e)) return {};
  return with_sign(e, x.negative, magnitude);
}

Code infinity_code(Element e, bool negative) {
  const ElementInfo type = info(e);
  if (type.specials != Specials::ieee) return {};
  return with_sign(e, negative, ones(type.exponent_bits) << type.mantissa_bits);
}

Code nan_code(Element e, bool negative, bool quiet, std::uint64_t payload) {
  const ElementInfo type = info(e);
  if (type.specials == Specials::one_nan) {
    if (!quiet || payload != 0 || !type.has_sign) return {};
    return with_sign(e, negative, ones(field_bits(e)));
  }
  if (type.specials != Specials::ieee) return {};
  const int top = type.mantissa_bits - 1;
  if (payload > ones(top) || (!quiet && payload == 0)) return {};
  const std::uint64_t mantissa = payload | (quiet ? std::uint64_t{1} << top : 0);
  return with_sign(e, negative, (ones(type.exponent_bits) << type.mantissa_bits) | mantissa);
}

Code scale_code(Element e, int exponent) {
  if (e != Element::ue8m0) return code_of(e, power(exponent));
  const int code = exponent + info(e).bias;
  if (code < 0 || code > 254) return {};
  return static_cast<std::uint64_t>(code);
}

}  // namespace numemu::oracle::recording::probing
