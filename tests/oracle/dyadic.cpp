// Arithmetic of ordered keys: enough for neighbours and midpoints, in integers.
#include "tests/oracle/dyadic.hpp"

#include <algorithm>
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

}  // namespace

Dyadic dyadic(Wide significand, std::int64_t exponent) {
  if (significand == 0) return {};
  const int shift = leading_zeros(significand);
  return {exponent + 127 - shift, significand << shift, false};
}

Dyadic dyadic(double x) {
  if (x == 0) return {};
  int exponent = 0;
  const double fraction = std::frexp(std::abs(x), &exponent);  // exact: only takes the bits apart
  return dyadic(static_cast<Wide>(std::ldexp(fraction, 53)), exponent - 53);
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
