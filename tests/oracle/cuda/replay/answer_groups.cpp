// FP4 with block scales: the exact sum of each group of products times its scales, then one fused
// step over the groups and C (specification of matrix units, 1.2: groups of 16).
#include "tests/oracle/cuda/replay/cores.hpp"

namespace numemu::oracle::recording::replay {
namespace {

/// Fraction bits of the exact sums: those of two FP4.
constexpr int kFraction = 2;

/// The exact sum of one group in units of 2^-kFraction.
std::int64_t group_sum(const Dot& dot, int from, int count) {
  const Instruction& i = *dot.instruction;
  std::int64_t sum = 0;
  for (int k = from; k < from + count; ++k) {
    const Number a = decode(info(i.a), code_at(dot.a, i.a, k));
    const Number b = decode(info(i.b), code_at(dot.b, i.b, k));
    if (a.significand == 0 || b.significand == 0) continue;
    const auto product =
        static_cast<std::int64_t>(a.significand * b.significand << (a.exponent + b.exponent));
    sum += a.negative != b.negative ? -product : product;
  }
  return sum;
}

/// The unit ignores the sign bit of ue4m3; a rule may not.
Number scale_number(const Rule& rule, const ElementInfo& e, std::uint8_t code) {
  Number n = decode(e, code);
  const bool subnormal = e.mantissa_bits != 0 && n.significand >> e.mantissa_bits == 0;
  if (rule.flush_scales && n.kind == Class::finite && subnormal) {
    n.significand = 0;
    n.exponent = kZeroExponent;
  }
  n.negative = rule.signed_scales && e.mantissa_bits != 0 && code >> 7 != 0;
  return n;
}

}  // namespace

std::uint64_t groups_answer(const Rule& rule, const Dot& dot) {
  const Instruction& i = *dot.instruction;
  const ElementInfo scale = info(i.scale);
  Product groups[kMostProducts];
  const int count = i.k / rule.step;
  const int fraction = kFraction + 2 * scale.mantissa_bits;
  for (int g = 0; g < count; ++g) {
    const int block = g * rule.step / i.block;
    const Number a = scale_number(rule, scale, dot.scale_a[block]);
    const Number b = scale_number(rule, scale, dot.scale_b[block]);
    const std::int64_t sum = group_sum(dot, g * rule.step, rule.step);
    const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
    const bool nan =
        (a.kind == Class::nan || b.kind == Class::nan) && (sum != 0 || !rule.nan_needs_nonzero);
    groups[g].significand = magnitude * a.significand * b.significand;
    groups[g].exponent = scale_exponent(rule, a, b);
    groups[g].negative = (sum < 0) != (a.negative != b.negative);
    groups[g].kind = nan ? Class::nan : Class::finite;
    groups[g].place = g;
    groups[g].shift = 0;
    if (rule.normalised_products && groups[g].significand != 0) {
      groups[g].shift = 63 - __builtin_clzll(groups[g].significand) - fraction;
      groups[g].exponent += groups[g].shift;
    }
  }
  const std::uint64_t c = code_at(dot.c, i.c, 0);
  const bool last = rule.c == CEnters::after_rounding;
  const Number first = last ? decode(info(i.c), 0) : accumulator(rule, i.c, c);
  const std::uint64_t t = fused_step(rule, groups, count, fraction, i.c, first, i.d);
  return last ? rounded_sum(rule, i.c, c, i.d, t) : t;
}

}  // namespace numemu::oracle::recording::replay
