// When the fast path applies, what its vector loops need, and why they are right.
//
// Why one division in double is safe. All decisions compare the real x / scale with a boundary b: a
// value of the format, or a point that divides the gap between two of them into 2^d equal parts.
// Its significand B has at most M + d + 1 bits, and d is 1 without random bits: rounding looks at
// midpoints. Write x = X 2^i and scale = S 2^j with integers 0 < X, S < 2^24 (subnormals included),
// b = B 2^k. If x / scale != b, then X 2^t != B S for t = i - j - k, and both sides are integers
// after multiplying by 2^max(-t, 0):
//   t >= 0: |X 2^t - B S| >= 1, so x / scale differs from b by at least b / (B S);
//   t <  0: |X - B S 2^-t| >= 1; either B S 2^-t < 2^25 and the difference exceeds b 2^-25, or it
//   is at least b / 2.
// Without random bits B S < 2^(M + 26) <= 2^41. Division in double, toward zero, makes the quotient
// smaller by less than 2^-52 of it (it stays within 2^-277..2^277: never subnormal, never infinite)
// and is exact when x / scale = b. So comparing the double with b decides as comparing the real
// would. In a gap x is divided by scale * smallest, a product of at most 39 bits, and compared with
// 1 / 2 and 1: the same holds.
// With random bits d reaches 33, and ties of the fraction's own rounding count. There the last bit
// of the double is set if the division left a rest: it then lies strictly between its neighbours of
// 52 bits as the real does, and every b, of at most M + 34 <= 48 bits, is one of them.
//
// Positions. The bits of a positive double ascend with it, and so do codes: above the lowest binade
// the bits less `base` are the position. Below it the sum with `grid` has the even grid's steps in
// its fraction; what this addition cuts off toward zero, sets the last bit again.
#include "formats/simd/quantize_fast.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>

#include "formats/codec.hpp"
#include "formats/value.hpp"

namespace numemu {
namespace {

using Step = QuantizePlan::Step;
using Low = QuantizePlan::Low;

constexpr int kFraction = 52;  // of a double
constexpr std::uint64_t kOne = 1;

void plan_rounding(const Rounding& rounding, QuantizePlan& plan) {
  const std::uint64_t all = plan.fraction, half = kOne << (plan.shift - 1);
  plan.step = Step::constant;
  switch (rounding.mode) {
    case RoundingMode::rne:
      plan.step = Step::nearest;
      plan.constant = half - 1;
      plan.tie_bit = plan.shift;
      plan.tie_mask = 1;
      return;
    case RoundingMode::rna:
      plan.constant = plan.constant_negative = half;
      return;
    case RoundingMode::rtz:
      return;
    case RoundingMode::rup:
      plan.constant = all;
      return;
    case RoundingMode::rdn:
      plan.constant_negative = all;
      return;
    case RoundingMode::rodd:
      plan.step = Step::odd;
      return;
    case RoundingMode::sr:
      break;
  }
  plan.step = Step::stochastic;
  plan.random_shift = plan.tie_bit = plan.shift - rounding.random_bits;
  const std::uint64_t half_of_random = kOne << (plan.random_shift - 1);
  if (rounding.variant == StochasticVariant::a) return;
  plan.constant = half_of_random;
  if (rounding.variant == StochasticVariant::b) return;
  plan.constant -= 1;
  plan.tie_mask = 1;
  plan.tie_flip = rounding.variant == StochasticVariant::odd ? 1 : 0;
}

void plan_floating(const Format& f, float scale, QuantizePlan& plan) {
  const bool gap = f.field_zero == FieldZero::normal;
  const double first_binade = std::ldexp(1.0, gap ? -f.bias : 1 - f.bias);
  plan.smallest = to_double(decode(f, 1));
  plan.base = std::bit_cast<std::uint64_t>(first_binade);
  plan.first_normal = kOne << f.mantissa_bits;
  if (gap) {
    plan.low = Low::gap;
    plan.below = plan.smallest;
    plan.gap_scale = scale * plan.smallest;
    plan.grid = std::ldexp(1.0, f.mantissa_bits);
    plan.first_normal = 1;
    return;
  }
  plan.low = f.field_zero == FieldZero::flush ? Low::flush : Low::subnormal;
  plan.base -= plan.first_normal << plan.shift;
  plan.below = plan.grid = first_binade;
}

void plan_integer(const Format& f, QuantizePlan& plan) {
  plan.low = Low::integer;
  plan.below = plan.grid = std::ldexp(1.0, f.bits);
}

void plan_overflow(const Conversion& c, QuantizePlan& plan) {
  const Format& f = *c.format;
  Conversion plain = c;
  plain.random_words = nullptr;
  const auto huge = [&](bool negative) {
    return encode_element(plain, {Class::finite, negative, false, 1 << 20, 1}, 0).code;
  };
  const auto value = [&](std::uint64_t code) {
    constexpr std::uint64_t kNan = 0x7ff8000000000000;  // float32's 0x7fc00000
    const Value v = decode(f, code);
    return v.kind == Class::nan ? kNan : std::bit_cast<std::uint64_t>(to_double(v));
  };
  plan.largest = plan.largest_negative = f.largest_code();
  if (f.kind == Kind::integer && f.is_signed && !c.symmetric) plan.largest_negative += 1;
  plan.over_code = huge(false);
  plan.over_code_negative = f.is_signed ? huge(true) : 0;
  if (!exact_in_float32(f)) return;
  plan.over_value = value(plan.over_code);
  plan.over_value_negative = value(plan.over_code_negative);
}

}  // namespace

std::optional<QuantizePlan> plan_quantize(const Conversion& c, float scale) {
  const Format& f = *c.format;
  constexpr int kModerateBias = 512;  // keeps every number of a plan a normal double
  const bool integer = f.kind == Kind::integer;
  if (f.bits > 16 || !(integer || f.kind == Kind::floating) || !f.has_zero()) return {};
  if (std::abs(f.bias) > kModerateBias) return {};
  const bool gap = f.field_zero == FieldZero::normal;
  if (gap && c.rounding.stochastic() && !has_fused_multiply_add()) return {};
  QuantizePlan plan;
  plan.scale = scale;
  plan.shift = kFraction - (integer ? f.bits : f.mantissa_bits);
  plan.fraction = (kOne << plan.shift) - 1;
  plan.sign_bit = f.sign_bit();
  plan.code_mask = f.code_mask();
  plan.zero_has_sign = f.has_negative_zero();
  plan_rounding(c.rounding, plan);
  if (integer) {
    plan_integer(f, plan);
  } else {
    plan_floating(f, scale, plan);
  }
  plan_overflow(c, plan);
  return plan;
}

bool exact_in_float32(const Format& f) {
  if (f.kind != Kind::floating) return f.bits <= 24;
  constexpr int kFraction32 = 23, kLowest = -149, kHighest = 127;
  const int lowest = (f.field_zero == FieldZero::normal ? 0 : 1) - f.bias - f.mantissa_bits;
  const auto top_field = static_cast<std::int64_t>(f.largest_code() >> f.mantissa_bits);
  return f.mantissa_bits <= kFraction32 && lowest >= kLowest && top_field - f.bias <= kHighest;
}

bool takes_fast_path(const Conversion& c, const float* x, std::int64_t n) {
  constexpr std::uint32_t kInfinity = 0x7f800000;
  // A sign that an unsigned format meets stays in, and makes the bits larger than an infinity's.
  return largest_masked_bits(x, n, c.format->is_signed ? 0x7fffffff : 0xffffffff) < kInfinity;
}

}  // namespace numemu
