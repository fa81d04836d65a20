// Builds the numbers of a plan; the reference determines every threshold.
#include "formats/simd/plan.hpp"

#include <bit>
#include <cmath>

#include "formats/codec.hpp"

namespace numemu::simd {
namespace {

constexpr int kFraction = 23;  // of float32
constexpr std::uint32_t kInfinityBits = 0x7f800000;
constexpr std::uint32_t kSignBit = 0x80000000;

// The smallest float32 magnitude for which `holds` is true; it is false below and true above.
// Infinity if it is never true.
template <class Predicate>
float first_float(Predicate holds) {
  std::uint32_t low = 0, high = kInfinityBits;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (holds(std::bit_cast<float>(middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return std::bit_cast<float>(high);
}

template <class Predicate>
Sided first_floats(Predicate holds) {
  return {first_float([&](float a) { return holds(a, 1.0F); }),
          first_float([&](float a) { return holds(a, -1.0F); })};
}

// What a conversion makes of x, as float32, code and flags.
Special special(const Conversion& c, float x) {
  const Encoded encoded = encode_element(c, value_of(x), 0);
  const Value value = decode(*c.format, encoded.code);
  return {nearest_float(value), static_cast<std::uint32_t>(encoded.code), encoded.flags};
}

void plan_integer(const Conversion& c, Plan& plan) {
  // Every value is a multiple of one step: the subnormal grid of a binade that holds them all.
  const Format& f = *c.format;
  plan.mantissa_bits = f.bits;
  plan.first_binade = std::ldexp(1.0F, f.bits);
  plan.largest = static_cast<float>(f.largest_code());
  plan.largest_negative = !f.is_signed ? 0 : plan.largest + (c.symmetric ? 0.0F : 1.0F);
  plan.beyond = std::max(plan.largest, plan.largest_negative) + 1;
  plan.twos_complement = f.is_signed;
  plan.smallest = 1;
  plan.smallest_normal = 0;  // integers never underflow
}

void plan_floating(const Conversion& c, Plan& plan) {
  const Format& f = *c.format;
  plan.mantissa_bits = f.mantissa_bits;
  plan.gap = f.field_zero == FieldZero::normal;
  plan.flush = f.field_zero == FieldZero::flush;
  plan.first_binade = std::ldexp(1.0F, plan.gap ? -f.bias : 1 - f.bias);
  plan.largest = static_cast<float>(largest_value(f));
  plan.largest_negative = f.is_signed ? plan.largest : 0;
  plan.beyond =
      plan.largest + std::max(std::ldexp(1.0F, std::ilogb(plan.largest)), plan.first_binade) *
                         std::ldexp(1.0F, -f.mantissa_bits);
  plan.smallest_normal = static_cast<float>(smallest_normal(f));
  plan.smallest = static_cast<float>(smallest_value(f));
}

HostRounding host_rounding(RoundingMode mode) {
  switch (mode) {
    case RoundingMode::rne:
      return HostRounding::nearest;
    case RoundingMode::rup:
      return HostRounding::up;
    case RoundingMode::rdn:
      return HostRounding::down;
    default:
      return HostRounding::toward_zero;
  }
}

Step step_of(RoundingMode mode) {
  switch (mode) {
    case RoundingMode::rna:
      return Step::away;
    case RoundingMode::rodd:
      return Step::odd;
    case RoundingMode::sr:
      return Step::stochastic;
    default:
      return Step::host;
  }
}

// Tininess is what rounding gives in a format whose exponents reach one binade further down.
Sided find_tiny(const Conversion& c) {
  const Format& f = *c.format;
  if (f.kind == Kind::integer) return {};
  Format wider = f;
  wider.bias += 1;
  wider.exponent_bits += 1;
  wider.bits += 1;
  const double normal = smallest_normal(f);
  return first_floats([&](float a, float sign) {
    const Encoded e =
        encode(wider, value_of(a * (f.is_signed ? sign : 1.0F)), c.rounding, Overflow::saturate);
    return std::abs(to_double(decode(wider, e.code))) >= normal;
  });
}

void find_thresholds(const Conversion& c, Plan& plan) {
  if (c.rounding.stochastic()) return;
  plan.tiny_below = find_tiny(c);
  const bool has_sign = c.format->is_signed;
  plan.over_from = first_floats([&](float a, float sign) {
    const Encoded e = encode_element(c, value_of(a * (has_sign ? sign : 1.0F)), 0);
    return (e.flags & kOverflow) != 0;
  });
  if (plan.gap)
    plan.up_from = first_floats([&](float a, float sign) {
      const Encoded e = encode_element(c, value_of(a * (has_sign ? sign : 1.0F)), 0);
      return a != 0 && to_double(decode(*c.format, e.code)) != 0;
    });
}

void find_specials(const Conversion& c, Plan& plan) {
  Conversion plain = c;
  plain.random_words = nullptr;
  const float nan = std::bit_cast<float>(kInfinityBits | 0x400000);
  plan.nan = special(plain, nan);
  plan.nan_negative = special(plain, std::bit_cast<float>(kInfinityBits | 0x400000 | kSignBit));
  plan.infinity = special(plain, HUGE_VALF);
  plan.infinity_negative = special(plain, -HUGE_VALF);
  const float huge = std::bit_cast<float>(kInfinityBits - 1);
  plan.over = special(plain, huge);
  plan.over_negative = special(plain, -huge);
  if (!c.format->is_signed) plan.refused = plan.over_negative;
}

bool fits(const Conversion& c) {
  const Format& f = *c.format;
  if (f.bits > 16) return false;
  if (c.rounding.stochastic() && c.rounding.random_bits > 24) return false;
  if (c.rounding.stochastic() && c.rounding.variant == StochasticVariant::b &&
      c.rounding.random_bits > 23)
    return false;
  if (f.kind == Kind::integer) return true;
  if (f.kind != Kind::floating) return false;
  if (f.mantissa_bits == 0 || f.field_zero == FieldZero::scale) return false;
  const bool gap = f.field_zero == FieldZero::normal;
  if (gap && c.rounding.stochastic()) return false;  // the fraction of the gap is not a float32
  // m * magic stays finite, and so does everything that is scaled by the random bits' weight.
  const int m = f.mantissa_bits, first = gap ? -f.bias : 1 - f.bias;
  const int last = static_cast<int>(f.largest_code() >> m) - f.bias + 1;
  const int fine = m + (c.rounding.stochastic() ? c.rounding.random_bits + 2 : 1);
  return first - fine > -125 && last + kFraction - m < 126 && last - first + fine < 126;
}

// In a binade from m on, m 2^k + a stays below 2 m 2^k for k of at least 2, also with random bits.
void plan_random(const Conversion& c, Plan& plan) {
  constexpr int kLeast = 2;
  const int k = kFraction - plan.mantissa_bits - plan.random_bits;
  const bool nearest = plan.variant == StochasticVariant::c;
  if (!c.rounding.stochastic() || k < kLeast || !(nearest || plan.variant == StochasticVariant::a))
    return;
  plan.fine_magic = std::ldexp(1.0F, k);
  if (nearest) plan.host = HostRounding::nearest;
}

}  // namespace

std::optional<Plan> make_plan(const Conversion& c) {
  if (!fits(c)) return {};
  const Format& f = *c.format;
  Plan plan;
  plan.step = step_of(c.rounding.mode);
  plan.host = host_rounding(c.rounding.mode);
  plan.sided = c.rounding.mode == RoundingMode::rup || c.rounding.mode == RoundingMode::rdn;
  plan.is_signed = f.is_signed;
  plan.keeps_zero_sign = f.has_negative_zero();
  if (f.kind == Kind::integer) {
    plan_integer(c, plan);
  } else {
    plan_floating(c, plan);
  }
  const int m = plan.mantissa_bits;
  plan.magic = std::ldexp(1.0F, kFraction - m);
  plan.half_step = std::ldexp(1.0F, -m - 1);
  plan.tiny_binade = f.kind == Kind::integer ? plan.first_binade : plan.first_binade / 2;
  plan.code_bits = f.bits;
  plan.code_mask = static_cast<std::uint32_t>(f.code_mask());
  plan.sign_bit = static_cast<std::uint32_t>(f.sign_bit());
  // The sum's bits less those of its binade's start count steps; each binade above the first one
  // adds 2^M codes (format codes are consecutive).
  const std::uint32_t first_field = std::bit_cast<std::uint32_t>(plan.first_binade) >> kFraction;
  plan.code_offset =
      0U - (first_field << m) - (static_cast<std::uint32_t>(kFraction - m) << kFraction);
  if (plan.gap) plan.code_offset -= 1U << m;  // field 0 is a binade of its own
  plan.random_bits = c.rounding.random_bits;
  plan.variant = c.rounding.variant;
  plan_random(c, plan);
  find_thresholds(c, plan);
  find_specials(c, plan);

  const bool saturates =
      c.overflow == Overflow::saturate || (c.overflow == Overflow::propagate && !f.has_infinity());
  const bool simple =
      saturates && f.is_signed && !plan.gap && !plan.flush && plan.largest == plan.largest_negative;
  plan.nan_keeps_sign = plan.nan.code != plan.nan_negative.code;
  plan.plain_codes = simple;
  // Rounding down leaves -0 where x - x is.
  plan.plain_values = simple && (plan.keeps_zero_sign || plan.host != HostRounding::down);
  return plan;
}

}  // namespace numemu::simd
