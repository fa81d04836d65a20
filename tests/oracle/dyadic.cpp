// Arithmetic of ordered keys: enough for neighbours and midpoints, in integers.
#include "tests/oracle/dyadic.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace numemu::oracle {
namespace {

int leading_zeros(Wide x) {
  int count = 0;
  for (; x >> 127 == 0; x <<= 1) ++count;
  return count;
}

// x + 2^unit or x - 2^unit; the unit divides x, so 128 bits hold both.
Dyadic step(const Dyadic& x, std::int64_t unit, bool up) {
  const std::int64_t exponent = std::min(x.lead, unit) - 64;
  const Wide a = x.bits >> (127 - (x.lead - exponent)), b = Wide{1} << (unit - exponent);
  return dyadic(up ? a + b : a - b, exponent);
}

std::int64_t unit_of(const Dyadic& x, int precision, std::int64_t lowest) {
  return std::max(x.lead - precision + 1, lowest);
}

int trailing_zeros(Wide x) {
  const auto low = static_cast<std::uint64_t>(x);
  return low != 0 ? std::countr_zero(low)
                  : 64 + std::countr_zero(static_cast<std::uint64_t>(x >> 64));
}

// Of the last bit that is set; zero has every unit.
std::int64_t last_bit(const Dyadic& x) {
  return x.zero() ? std::numeric_limits<std::int64_t>::max()
                  : x.lead - 127 + trailing_zeros(x.bits);
}

// x / 2^unit, a whole number.
Integer over(const Dyadic& x, std::int64_t unit) {
  if (x.sticky) throw std::logic_error("a rounded key has no exact value");
  if (x.zero()) return 0;
  Integer n(Wide{x.bits >> trailing_zeros(x.bits)});
  return n << static_cast<unsigned>(last_bit(x) - unit);
}

}  // namespace

Dyadic dyadic(Wide significand, std::int64_t exponent) {
  if (significand == 0) return {};
  const int shift = leading_zeros(significand);
  return {exponent + 127 - shift, significand << shift, false};
}

Dyadic dyadic(const Rational& x) {
  if (x == 0) return {};
  const Integer n = numerator(x), d = denominator(x);
  // 2^(shift - 1) < n / d < 2^(shift + 1); two more than 128 bits of quotient, then the leading
  // 128.
  const std::int64_t shift = static_cast<std::int64_t>(msb(n)) - static_cast<std::int64_t>(msb(d));
  const std::int64_t exponent = shift - 129;
  Integer quotient = exponent < 0 ? Integer(n << static_cast<unsigned>(-exponent)) : n;
  const Integer divisor = exponent < 0 ? d : Integer(d << static_cast<unsigned>(exponent));
  Integer rest;
  divide_qr(Integer(quotient), divisor, quotient, rest);
  const unsigned drop = static_cast<unsigned>(msb(quotient)) - 127;
  const Integer kept = quotient >> drop;
  Dyadic result{exponent + drop + 127, static_cast<Wide>(kept), false};
  result.sticky = rest != 0 || Integer(kept << drop) != quotient;
  return result;
}

Dyadic dyadic(double x) {
  if (x == 0) return {};
  int exponent = 0;
  const double fraction = std::frexp(std::abs(x), &exponent);  // exact: only takes the bits apart
  return dyadic(static_cast<Wide>(std::ldexp(fraction, 53)), exponent - 53);
}

Rational rational(const Dyadic& x) {
  if (x.sticky) throw std::logic_error("a rounded key has no exact value");
  const std::int64_t exponent = x.lead - 127;
  if (x.zero()) return 0;
  Integer n(x.bits);
  if (exponent >= 0) return Rational(n << static_cast<unsigned>(exponent));
  // Take the common powers of two out first: a quick way to the reduced fraction.
  const auto common = std::min<std::int64_t>(-exponent, static_cast<std::int64_t>(lsb(n)));
  n >>= static_cast<unsigned>(common);
  return Rational(n, Integer(1) << static_cast<unsigned>(-exponent - common));
}

Share share(const Dyadic& x, const Dyadic& low, const Dyadic& high) {
  const std::int64_t unit = std::min({last_bit(x), last_bit(low), last_bit(high)});
  const Integer from = over(low, unit);
  return {over(x, unit) - from, over(high, unit) - from};
}

Dyadic part_way(const Dyadic& low, const Dyadic& high, int part, int bits) {
  const std::int64_t unit = std::min(last_bit(low), last_bit(high));
  const Integer from = over(low, unit), to = over(high, unit);
  const Integer sum = (from << static_cast<unsigned>(bits)) + (to - from) * part;
  if (sum != 0 && msb(sum) >= 128) throw std::logic_error("more than 128 bits");
  return dyadic(static_cast<Wide>(sum), unit - bits);
}

Dyadic middle(const Dyadic& a, const Dyadic& b) {
  if (a.zero()) return {b.lead - 1, b.bits, false};
  const std::int64_t shift = b.lead - a.lead + 1;
  return dyadic((b.bits >> 1) + (shift < 128 ? a.bits >> shift : 0), b.lead - 127);
}

Dyadic next_above(const Dyadic& x, int precision, std::int64_t lowest) {
  return step(x, unit_of(x, precision, lowest), true);
}

Dyadic next_below(const Dyadic& x, int precision, std::int64_t lowest) {
  const std::int64_t unit = unit_of(x, precision, lowest);
  return step(x, x.power_of_two() ? std::max(unit - 1, lowest) : unit, false);
}

Value value(const Dyadic& x, bool negative) {
  if (x.zero()) return {.kind = Class::zero, .negative = negative};
  if (static_cast<std::uint64_t>(x.bits) != 0) throw std::logic_error("more than 64 bits");
  return {Class::finite, negative, x.sticky, static_cast<std::int32_t>(x.lead - 63),
          static_cast<std::uint64_t>(x.bits >> 64)};
}

}  // namespace numemu::oracle
