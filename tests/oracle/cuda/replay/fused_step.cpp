// One fused step: align to the largest exponent, cut, add exactly, round once
// (specification of matrix units, 1.1).
#include <algorithm>

#include "tests/oracle/cuda/replay/cores.hpp"
#include "tests/oracle/cuda/replay/wide.hpp"

namespace numemu::oracle::recording::replay {
namespace {

/// significand * 2^-shift, signed, as the alignment leaves it.
std::int64_t aligned(Align align, bool negative, std::uint64_t significand, int shift) {
  if (shift <= 0) {
    const auto whole = static_cast<std::int64_t>(significand << -shift);
    return negative ? -whole : whole;
  }
  const int cut = std::min(shift, 62);
  auto whole = static_cast<std::int64_t>(significand >> cut);
  if (align != Align::toward_zero) {
    const std::uint64_t rest = significand & ((std::uint64_t{1} << cut) - 1);
    const std::uint64_t half = std::uint64_t{1} << (cut - 1);
    if (align == Align::down) {
      whole += negative && rest != 0 ? 1 : 0;
    } else {
      whole += rest > half || (rest == half && (whole & 1) != 0) ? 1 : 0;
    }
  }
  return negative ? -whole : whole;
}

/// The exact sum in units of 2^unit, cut toward zero once.
std::int64_t exact_sum(const Product* products, int count, int fraction, const Number& c,
                       int lowest_of_c, int unit) {
  WideProducts sum;
  if (c.significand != 0) sum.add(c.negative, 0, c.significand, lowest_of_c);
  for (int i = 0; i < count; ++i) {
    const Product& p = products[i];
    if (p.significand != 0) sum.add(p.negative, 0, p.significand, p.exponent - p.shift - fraction);
  }
  const WideProducts::Top top = sum.top();
  const int shift = unit - top.exponent;
  if (top.magnitude == 0 || shift > 63) return 0;
  const auto whole = static_cast<std::int64_t>(top.magnitude >> shift);
  return top.negative ? -whole : whole;
}

/// Infinities and NaN of a step decide alone.
struct Special {
  bool nan = false, infinite[2] = {false, false};
  void meet(Class kind, bool negative) {
    nan = nan || kind == Class::nan;
    if (kind == Class::infinite) infinite[negative ? 1 : 0] = true;
  }
  bool any() const { return nan || infinite[0] || infinite[1]; }
  std::uint64_t code(Element out) const {
    return nan || (infinite[0] && infinite[1]) ? canonical_nan(out)
                                               : infinity_code(out, infinite[1]);
  }
};

}  // namespace

Number accumulator(const Rule& rule, Element element, std::uint64_t code) {
  const ElementInfo e = info(element);
  Number n = decode(e, code);
  if (rule.infinite_c_is_nan && n.kind == Class::infinite) n.kind = Class::nan;
  if (rule.flush_c && n.kind == Class::finite && n.significand >> e.mantissa_bits == 0) {
    n.significand = 0;
    n.exponent = kZeroExponent;
  }
  return n;
}

Writing writing_of(const Rule& rule, Element out) {
  if (out != Element::f32)
    return {out, Rounding::nearest_even, info(out).mantissa_bits, false, true, rule.flush_result};
  return {out,
          Rounding::toward_zero,
          rule.kept,
          rule.overflow == Overflow::largest_finite,
          rule.zero_sign == ZeroSign::of_sum || rule.zero_sign == ZeroSign::of_addends,
          rule.flush_result};
}

std::uint64_t fused_step(const Rule& rule, const Product* products, int count, int fraction,
                         Element in, const Number& c, Element out) {
  Special special;
  special.meet(c.kind, c.negative);
  int largest = rule.exponent_floor;
  const bool zero_c_counts = rule.zero == ZeroProduct::least_exponent;
  const bool zero_counts = rule.zero != ZeroProduct::dropped;
  if (c.significand != 0 || zero_c_counts) largest = std::max(largest, c.exponent);
  bool all_negative = c.negative, all_zero = c.significand == 0;
  for (int i = 0; i < count; ++i) {
    const Product& p = products[i];
    if (p.kind != Class::finite) special.meet(p.kind, p.negative);
    if (p.significand != 0 || zero_counts) largest = std::max(largest, p.exponent);
    all_negative = all_negative && p.negative;
    all_zero = all_zero && p.significand == 0;
  }
  if (special.any()) return special.code(out);
  // Nothing takes part: all is zero, and any unit will do.
  const int unit = largest == INT_MIN ? 0 : largest - rule.fraction;
  const int lowest_of_c = c.exponent - info(in).mantissa_bits;
  std::int64_t sum = 0;
  if (rule.align == Align::of_sum) {
    sum = exact_sum(products, count, fraction, c, lowest_of_c, unit);
  } else {
    if (c.significand != 0)
      sum = aligned(rule.align, c.negative, c.significand, unit - lowest_of_c);
    for (int i = 0; i < count; ++i) {
      const Product& p = products[i];
      if (p.significand == 0) continue;
      const int lowest = p.exponent - p.shift - fraction;
      sum += aligned(rule.align, p.negative, p.significand, unit - lowest);
    }
  }
  const bool minus_zero = all_negative && (rule.zero_sign == ZeroSign::of_addends ||
                                           (rule.zero_sign == ZeroSign::of_zeros && all_zero));
  const bool negative = sum < 0 || (sum == 0 && minus_zero);
  if (sum == 0) {
    const std::uint64_t sign = std::uint64_t{1} << (info(out).bits - 1);
    return negative ? sign : 0;
  }
  const auto magnitude = static_cast<std::uint64_t>(negative ? -sum : sum);
  return encode(writing_of(rule, out), negative, magnitude, unit);
}

std::uint64_t rounded_sum(const Rule& rule, Element of_c, std::uint64_t code_c, Element of_t,
                          std::uint64_t code_t) {
  const Number c = accumulator(rule, of_c, code_c), t = decode(info(of_t), code_t);
  Special special;
  special.meet(c.kind, c.negative);
  special.meet(t.kind, t.negative);
  if (special.any()) return special.code(of_t);
  WideSingle sum;
  if (c.significand != 0)
    sum.add(c.negative, 0, c.significand, c.exponent - info(of_c).mantissa_bits);
  if (t.significand != 0)
    sum.add(t.negative, 0, t.significand, t.exponent - info(of_t).mantissa_bits);
  const WideSingle::Top top = sum.top();
  const bool negative = top.magnitude == 0 ? c.negative && t.negative : top.negative;
  const Writing to{of_t, Rounding::nearest_even, info(of_t).mantissa_bits, false,
                   true, rule.flush_result};
  return encode(to, negative, top.magnitude, top.exponent);
}

}  // namespace numemu::oracle::recording::replay
