// The search in the list of element values.
#include "tests/formats/blocks/block_oracle.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "formats/codec.hpp"

namespace numemu::oracle {

std::vector<Element> elements_of(const Format& f, int exponent, bool symmetric) {
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

Element rounded(const std::vector<Element>& list, const Fraction& q, RoundingMode mode) {
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

float nearest_float(const Fraction& x) {
  const Fraction magnitude = abs(x);
  const Fraction beyond = power_of_two(128);
  const float largest = std::numeric_limits<float>::max();
  float best = static_cast<float>(magnitude.approximate());
  if (!(best <= largest)) best = largest;
  const auto distance = [&](float f) {
    return abs((std::isinf(f) ? beyond : fraction(f)) - magnitude);
  };
  for (const float f : {std::nextafter(best, 0.0f), std::nextafter(best, HUGE_VALF)}) {
    const Fraction a = distance(f), b = distance(best);
    const bool even = (std::bit_cast<std::uint32_t>(f) & 1) == 0;
    if (a < b || (a == b && even)) best = f;
  }
  return x < 0 ? -best : best;
}

}  // namespace numemu::oracle
