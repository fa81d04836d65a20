// The proofs: when float lanes suffice, when one rounding follows another harmlessly, what is idle.
#include "emu/unit/mac/plan.hpp"

#include <algorithm>
#include <cmath>

#include "formats/codec.hpp"

namespace numemu::unit::mac {
namespace {

constexpr int kFloatBits = 24, kDoubleBits = 53;
/// Bounds beyond this are as good as none: every register ends below 2^128.
constexpr double kHuge = 0x1p200;

Rule rule_of(const Rounding& rounding) {
  switch (rounding.mode) {
    case RoundingMode::rne:
      return Rule::even;
    case RoundingMode::rna:
      return Rule::away;
    case RoundingMode::rtz:
      return Rule::zero;
    case RoundingMode::rup:
      return Rule::up;
    case RoundingMode::rdn:
      return Rule::down;
    case RoundingMode::rodd:
      return Rule::odd;
    case RoundingMode::sr:
      break;
  }
  if (rounding.variant == StochasticVariant::c) return Rule::random_even;
  return rounding.variant == StochasticVariant::odd ? Rule::random_odd : Rule::random_cut;
}

/// The fields that follow from the rounding alone.
Plan start(const Rounding& rounding) {
  Plan plan;
  plan.rule = rule_of(rounding);
  if (!rounding.stochastic()) return plan;
  plan.random_bits = rounding.random_bits;
  plan.half_added = rounding.variant == StochasticVariant::b;
  plan.cut_bits = plan.random_bits + (plan.half_added ? 1 : 0);
  return plan;
}

/// Two bits below the last place that counts survive in lanes of `bits` bits: what rounding to odd
/// needs, and what lets a cut fraction plus a random one plus one step carry without rounding.
bool room_below(const Plan& plan, int bits) {
  return plan.mantissa_bits + plan.cut_bits + 1 + 2 <= bits;
}

/// A finite value beyond the largest one, and infinity, as encode() replaces them.
double replaced(const Register& r, bool negative, bool infinite) {
  Value beyond{.kind = Class::infinite, .negative = negative};
  if (!infinite) {
    beyond = decode(*r.format, r.format->largest_code(negative));
    beyond.exponent += 2;
  }
  return double_or_nan(decode(*r.format, encode(*r.format, beyond, r.rounding, r.overflow).code));
}

/// The smallest number of M + 1 bits that is not below x > 0.
double next_number(double x, int mantissa_bits) {
  const double unit = std::ldexp(1.0, std::ilogb(x) - mantissa_bits);
  return std::ceil(x / unit) * unit;
}

/// No partial sum of `count` addends exceeds this: rounding, in any direction, is monotonic,
/// so a sum that is at most a number of the register stays at most that number. Binade by binade:
/// inside one every addition takes the same whole number of steps, or, rounding to nearest, none.
double chain_bound(double start, double addend, std::int64_t count, const Plan& plan) {
  const bool nearest = plan.rule == Rule::even || plan.rule == Rule::away;
  double bound = start;
  while (count > 0 && addend > 0 && bound < kHuge) {
    const double binade = std::ldexp(1.0, std::ilogb(std::max(bound, addend)));
    const double unit = std::ldexp(binade, -plan.mantissa_bits);
    if (nearest && addend < unit / 2) break;
    const double step = std::ceil(addend / unit) * unit;
    const double to_next = std::max(std::ceil((2 * binade - bound) / step), 1.0);
    const double taken = std::min(static_cast<double>(count), to_next);
    bound = next_number(bound + taken * step, plan.mantissa_bits);
    count -= static_cast<std::int64_t>(taken);
  }
  return bound;
}

double sum_bound(const Inputs& in, int chunk, const Plan& plan) {
  if (in.a.empty() || in.b.empty()) return in.largest_c;
  // |a b| <= (2^top_a - one unit) (2^top_b - one unit).
  const double product =
      std::ldexp(1.0 - std::ldexp(1.0, -in.product_bits), std::min(in.a.top + in.b.top, 200));
  if (chunk == 0) return chain_bound(in.largest_c, product, in.k, plan);
  const double part = chain_bound(0, product, std::min<std::int64_t>(chunk, in.k), plan);
  return chain_bound(in.largest_c, part, (in.k + chunk - 1) / chunk, plan);
}

struct Range {
  int low = 0, top = 0;  ///< as Exponents, of the products
  bool fits(int lowest, int highest) const { return low >= lowest && top <= highest; }
};

Range products_of(const Inputs& in) {
  if (in.a.empty() || in.b.empty()) return {};
  return {in.a.low + in.b.low, in.a.top + in.b.top};
}

/// Whether products are exact and sums finite in double lanes; the register fits float32.
bool double_lanes(const Inputs& in) {
  return in.product_bits <= kDoubleBits && products_of(in).fits(-1000, 1000);
}

std::optional<Plan> plan_floating(const Register& r, int chunk, const Inputs& in) {
  Plan plan = double_plan(r);
  if (!room_below(plan, kDoubleBits) || !double_lanes(in)) return {};

  const int m = plan.mantissa_bits, quantum = plan.first_binade - m;
  const Range products = products_of(in);
  // Infinity may become the largest number.
  const double bound = in.infinite ? kHuge : sum_bound(in, chunk, plan);
  // Float lanes: exact products (at most 24 bits, a multiple of 2^-149); no sum reaches 2^128; the
  // last random bit is not below 2^-149; for every result of the register the number that a sum is
  // rounded beside, 2^(e + 23 - M), is finite.
  const double beside = std::ldexp(std::min(bound, plan.largest), kFloatBits - 1 - m);
  plan.wide = !(room_below(plan, kFloatBits) && in.product_bits <= kFloatBits &&
                products.fits(-149, 126) && quantum - plan.cut_bits >= -149 && beside < 0x1p126);
  if (plan.wide) return plan;

  // Products and C are multiples of the smallest subnormal, and so is every sum: none needs the
  // lower end. Its binade may be that number, without a C the smallest product, and the last random
  // bit of that binade has to be a float32. A sum is -0 only if it starts as -0, or where it
  // cancels and is rounded down.
  const int lowest = in.largest_c == 0 ? std::max(quantum, products.low) : quantum;
  const bool ends_idle = plan.rule != Rule::down && products.low >= quantum &&
                         lowest - m - plan.cut_bits >= -149 && bound <= plan.largest &&
                         !in.negative_zero_c && !in.foreign_c;
  if (ends_idle) plan.ends = Ends::free;

  // RNE to p = M + 1 bits after RNE to 24. They could differ from one RNE where the exact sum s is
  // nearer to a midpoint h of the register than half a unit of 24 bits, |s - h| <= 2^(e - 24) with
  // 2^e <= |s|, but not h itself. Let q <= p be the bits of a product x, y the register, s = x + y.
  // h is an odd multiple of half a step at s. (1) The register's step at y is not below the one at
  // s: then y != h, |y - h| >= 2^(e - p), so x is as large or s is not near h; x is a multiple of
  // 2^(e - p - q), hence |s - h| >= 2^(e - p - q). (2) Otherwise x >= |s| / 2, and x != h, which
  // has p + 1 bits; |x - h| >= 2^(e - p), y is as large and a multiple of 2^(e - 2 p).
  // With p + q <= 2 p < 24 neither is possible. In the subnormal range steps only grow.
  const int p = m + 1;
  if (plan.rule == Rule::even && in.product_bits <= p && 2 * p < kFloatBits && !in.foreign_c)
    plan.rule = Rule::plain;
  return plan;
}

std::optional<Plan> plan_integer(const Register& r, const Inputs& in) {
  Plan plan = start(r.rounding);
  plan.ends = r.integer == IntegerOverflow::wrap ? Ends::wrapped : Ends::clamped;
  plan.mantissa_bits = r.bits - 1;
  plan.first_binade = r.bits - 1 - r.fraction;
  plan.modulus = std::ldexp(1.0, r.bits - r.fraction);
  plan.lowest = -plan.modulus / 2;
  plan.highest = plan.modulus / 2 - std::ldexp(1.0, -r.fraction);
  const Range products = products_of(in);
  if (in.special || !double_lanes(in) || std::abs(r.fraction) > 64) return {};
  // Units of the last place: sums stay below 2^(largest + 1).
  const int largest = std::max(plan.mantissa_bits, products.top + r.fraction);
  if (products.low + r.fraction >= 0) {
    plan.rule = Rule::none;
    // +-1/2 of the modulus is added before a wrap.
    if (largest + 1 > kDoubleBits - 2) return {};
    plan.wide = in.product_bits > kFloatBits || largest + 1 > kFloatBits - 2 ||
                !products.fits(-126, 126) || std::abs(r.fraction) > 64;
    return plan;
  }
  // The number that a sum is rounded beside, 2^(52 - cut) units, must exceed every sum fourfold.
  if (largest + 1 + plan.cut_bits + 2 > kDoubleBits - 1) return {};
  plan.wide = true;
  return plan;
}

}  // namespace

int precision(const Format& format) {
  return format.kind == Kind::floating ? format.mantissa_bits + 1 : format.bits;
}

Plan double_plan(const Register& r) {
  const Format& format = *r.format;
  Plan plan = start(r.rounding);
  plan.wide = true;
  plan.mantissa_bits = format.mantissa_bits;
  plan.first_binade = 1 - format.bias;
  plan.negative_zero = format.has_negative_zero();
  plan.largest = largest_value(format);
  for (const bool negative : {false, true}) {
    plan.overflow[negative] = replaced(r, negative, r.overflow_to_infinity);
    plan.infinity[negative] = replaced(r, negative, true);
  }
  return plan;
}

std::optional<Plan> make_plan(const Register& r, int chunk, const Inputs& in) {
  return r.format != nullptr ? plan_floating(r, chunk, in) : plan_integer(r, in);
}

}  // namespace numemu::unit::mac
