// Block formats by exact fractions: the neighbours in the list of element values decide; shares no
// code with the conversion under test.
#pragma once
#include <algorithm>
#include <boost/multiprecision/gmp.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "formats/block_format.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {

/// GMP's: the tests take less than half of the time that they took with Boost's own.
using Fraction = boost::multiprecision::mpq_rational;

inline Fraction power_of_two(int e) {
  const boost::multiprecision::mpz_int power = boost::multiprecision::mpz_int(1) << std::abs(e);
  return e >= 0 ? Fraction(power, 1) : Fraction(1, power);
}

inline Fraction fraction(double x) {
  int e = 0;
  const double m = std::frexp(x, &e);
  return Fraction(static_cast<std::int64_t>(std::ldexp(m, 53))) * power_of_two(e - 53);
}

/// The finite values of a format in ascending order with their codes; one code for zero.
struct Element {
  Fraction value;
  std::uint64_t code;
};
inline std::vector<Element> elements_of(const Format& f, int exponent, bool symmetric) {
  std::vector<Element> list;
  for (std::uint64_t code = 0; code <= f.code_mask(); ++code) {
    if (symmetric && f.kind == Kind::integer && f.is_signed && code == f.sign_bit()) continue;
    const Value v = decode(f, code);
    if (v.kind == Class::zero && code != 0) continue;
    if (v.kind == Class::zero) list.push_back({0, code});
    if (v.kind == Class::finite)
      list.push_back({fraction(to_double(v)) * power_of_two(exponent), code});
  }
  std::sort(list.begin(), list.end(),
            [](const Element& a, const Element& b) { return a.value < b.value; });
  return list;
}

/// The element that q rounds to, saturating; zero has the positive code. Evenness is that of the
/// magnitude's code (two's complement: of the number), as in the specification.
inline Element rounded(const std::vector<Element>& list, const Fraction& q, RoundingMode mode) {
  const auto above = std::lower_bound(
      list.begin(), list.end(), q, [](const Element& e, const Fraction& x) { return e.value < x; });
  if (above == list.end()) return list.back();
  if (above->value == q || above == list.begin()) return *above;
  const Element high = *above, low = *(above - 1);
  const Fraction to_low = q - low.value, to_high = high.value - q;
  switch (mode) {
    case RoundingMode::rdn:
      return low;
    case RoundingMode::rup:
      return high;
    case RoundingMode::rtz:
      return q > 0 ? low : high;
    case RoundingMode::rodd:
      return (low.code & 1) != 0 ? low : high;
    default:
      break;
  }
  if (to_low != to_high) return to_low < to_high ? low : high;
  if (mode == RoundingMode::rna) return q > 0 ? high : low;
  return (low.code & 1) == 0 ? low : high;
}

/// The float32 nearest to x, ties to even; infinite from the midpoint beyond the largest on.
inline float nearest_float(const Fraction& x) {
  const Fraction magnitude = x < 0 ? Fraction(-x) : x;
  const Fraction beyond = power_of_two(128);
  const float largest = std::numeric_limits<float>::max();
  float best = static_cast<float>(static_cast<double>(magnitude));
  if (!(best <= largest)) best = largest;
  const auto distance = [&](float f) {
    const Fraction d = (std::isinf(f) ? beyond : fraction(f)) - magnitude;
    return d < 0 ? Fraction(-d) : d;
  };
  for (const float f : {std::nextafter(best, 0.0f), std::nextafter(best, HUGE_VALF)}) {
    const Fraction a = distance(f), b = distance(best);
    const bool even = (std::bit_cast<std::uint32_t>(f) & 1) == 0;
    if (a < b || (a == b && even)) best = f;
  }
  return x < 0 ? -best : best;
}

}  // namespace numemu::oracle
