#include "emu/oracle/recording/data_plan.hpp"

#include <algorithm>

namespace numemu::oracle::recording {
namespace {

struct Exponents {
  int low, high;
};

/// Bits of small integers: operands, accumulator.
struct IntegerBits {
  int operand, c;
};
IntegerBits integer_bits(DataKind kind) {
  switch (kind) {
    case DataKind::narrow:
      return {3, 8};
    case DataKind::mixed:
      return {5, 16};
    case DataKind::broad:
      return {8, 24};
    case DataKind::cancelling:
      return {8, 4};
    case DataKind::tiny:
      return {2, 2};
    case DataKind::zeros:
      return {8, 0};
    default:
      return {8, 32};
  }
}

/// Half of a sum of exponents for each factor, as far as the types have it.
void share(const Instruction& i, int sum, Exponents& a, Exponents& b) {
  const Parts pa(i.a), pb(i.b);
  const int most_b = pb.exponent_of(pb.top), least_b = pb.exponent_of(0);
  const int for_a = std::clamp(sum / 2, pa.exponent_of(0), pa.exponent_of(pa.top));
  const int for_b = std::clamp(sum - for_a, least_b, most_b);
  a = {for_a - 2, for_a + 1};
  b = {for_b - 2, for_b + 1};
}

/// What both C and D have (m8n8k4 mixes float16 and float32).
Exponents of_sums(const Instruction& i) {
  const Parts c(i.c), d(i.d);
  return {std::max(c.exponent_of(0), d.exponent_of(0)),
          std::min(c.exponent_of(c.top), d.exponent_of(d.top))};
}

/// Before types cut them: C is the wider, for it takes sums.
struct Spread {
  Exponents a, b, c;
};
Spread spread(const Instruction& i, DataKind kind, std::int64_t turn) {
  const auto [least_c, most_c] = of_sums(i);
  const int far = info(i.a).exponent_bits == 11 ? 60 : 24;
  Spread s{{-4, 4}, {-4, 4}, {-6, 8}};
  switch (kind) {
    case DataKind::narrow:
      s = {{-1, 1}, {-1, 1}, {-2, 4}};
      break;
    case DataKind::broad:
      s = {{-8, 8}, {-8, 8}, {-12, 14}};
      break;
    case DataKind::wide:
      s = {{-far, far}, {-far, far}, {-far - 6, far + 6}};
      break;
    case DataKind::cancelling:
      s.c = {-28, 0};
      break;
    case DataKind::accumulator:
      s.a = s.b = {-6, 2};
      break;
    case DataKind::tiny: {
      const Parts a(i.a), b(i.b);
      const int least_a = a.exponent_of(0), least_b = b.exponent_of(0), half = least_c / 2;
      const Exponents beneath{half - 12, half + 2};
      if (turn % 3 == 0) s = {{least_a - 1, least_a}, {-2, 2}, {least_a - 12, least_a + 2}};
      if (turn % 3 == 1) s = {{-2, 2}, {least_b - 1, least_b}, {least_b - 12, least_b + 2}};
      if (turn % 3 == 2) s = {beneath, beneath, {least_c - 1, least_c}};
      // Beneath every exponent that is said to bound the alignment from below; C is zero.
      if (turn % 6 == 5) s.a.high = s.b.high = half - 4;
      break;
    }
    case DataKind::zeros:
      // A zero that counts as 2^-126 times B raises the alignment of smaller products.
      if (turn % 2 == 1 && info(i.a).exponent_bits >= 8) {
        const int least_a = Parts(i.a).exponent_of(0);
        s.a = {least_a, least_a + 6};
        s.b = {1, 61};
      }
      break;
    case DataKind::specials:
      if (turn % 2 == 1) {
        share(i, most_c, s.a, s.b);
        s.c = {most_c - 3, most_c};
        return s;
      }
      break;
    default:
      break;
  }
  // Sums of a float16 result would overflow most of the time; the kinds below ask for overflow.
  const int highest = (most_c - 5) / 2;
  s.a.high = std::min(s.a.high, highest);
  s.b.high = std::min(s.b.high, highest);
  s.c.high = std::min(s.c.high, most_c - 1);
  return s;
}

Plan scale_plan(const Instruction& i, DataKind kind, std::int64_t turn) {
  const Parts p(i.scale);
  const int half = of_sums(i).low / 2;
  Plan plan;
  switch (kind) {
    case DataKind::narrow:
      plan.range = exponents(p, -1, 1);
      break;
    case DataKind::broad:
      plan.range = exponents(p, -8, 8);
      break;
    case DataKind::wide:
      plan.range = exponents(p, -16, 16);
      break;
    case DataKind::accumulator:
      plan.range = exponents(p, -4, 0);
      break;
    case DataKind::tiny:
      plan.range = turn % 3 == 2 ? exponents(p, half - 12, half + 2) : exponents(p, -2, 2);
      break;
    default:
      plan.range = exponents(p, -4, 4);
  }
  plan.any = kind == DataKind::widest;
  if (kind == DataKind::specials) plan.one_special_of = 8;
  return plan;
}

/// A power of two at least `n`.
int power_above(int n) {
  int power = 1;
  while (power < n) power *= 2;
  return power;
}

Plans integer_plans(DataKind kind) {
  Plans p;
  const IntegerBits bits = integer_bits(kind);
  p.a.bits = p.b.bits = bits.operand;
  p.c.bits = bits.c;
  p.c.at_ends = kind == DataKind::accumulator || kind == DataKind::specials;
  if (kind == DataKind::specials) {
    p.a.one_special_of = p.b.one_special_of = 2;
    p.c.one_special_of = 8;
  }
  return p;
}

Plans floating_plans(const Instruction& i, DataKind kind, std::int64_t turn) {
  const Spread s = spread(i, kind, turn);
  const Parts a(i.a), b(i.b), c(i.c);
  Plans p;
  p.a.range = exponents(a, s.a.low, s.a.high);
  p.b.range = exponents(b, s.b.low, s.b.high);
  p.c.range = exponents(c, s.c.low, s.c.high);
  if (kind == DataKind::tiny && turn % 6 == 5) p.c.range = {0, 0, 0};
  if (kind == DataKind::accumulator) {
    // Two significands below 2, and two of ue4m3 scales below 2.
    const int scaled = i.scale == Element::ue4m3 ? 4 : 2;
    const int above = a.exponent_of(p.a.range.high) + b.exponent_of(p.b.range.high) + scaled;
    p.c.range = exponents(c, above, std::min(above + 14, of_sums(i).high));
  }
  p.a.any = p.b.any = p.c.any = kind == DataKind::widest;
  // By turns, B small enough that no product overflows C.
  const int no_overflow = of_sums(i).high - 5 - a.exponent_of(a.top);
  if (kind == DataKind::widest && turn % 2 == 1 && no_overflow < b.exponent_of(b.top)) {
    p.b.any = false;
    p.b.range = exponents(b, b.exponent_of(0) - 1, no_overflow);
  }
  if (kind <= DataKind::broad && turn % 2 == 1) {
    for (Plan* plan : {&p.a, &p.b}) {
      const Parts& parts = plan == &p.a ? a : b;
      plan->range.mantissa &= ~low_bits(std::max(parts.mantissa - 2, 0));
    }
  }
  // The low bits of tf32, which the unit is said to drop.
  const bool dropped_bits = kind == DataKind::mixed || kind == DataKind::wide ||
                            kind == DataKind::accumulator ||
                            (kind == DataKind::specials && turn % 2 == 1);
  if (dropped_bits) {
    p.a.range.mantissa |= low_bits(a.dropped);
    p.b.range.mantissa |= low_bits(b.dropped);
  }
  if (kind == DataKind::specials) {
    // About one in every dot; where overflow is asked, in every fourth.
    p.a.one_special_of = p.b.one_special_of = power_above(i.kept()) * (turn % 2 == 1 ? 8 : 2);
    p.c.one_special_of = 8;
  }
  return p;
}

}  // namespace

Plans plans(const Instruction& i, DataKind kind, std::int64_t turn) {
  Plans p = is_integer(i.a) ? integer_plans(kind) : floating_plans(i, kind, turn);
  if (i.block != 0) p.scale_a = p.scale_b = scale_plan(i, kind, turn);
  return p;
}

}  // namespace numemu::oracle::recording
