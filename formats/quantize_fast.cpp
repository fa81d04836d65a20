// When the nearest-even fast path applies, what its vector loops need, and why they are right.
//
// Why one division in double is safe. All decisions compare the real x / scale with a boundary b: a
// value of the format, a midpoint of two, or the tininess threshold, each at most 10 significant
// bits wide. Write x = X 2^i and scale = S 2^j with integers 0 < X, S < 2^24 (subnormals included),
// b = B 2^k with B < 2^10. If x / scale != b, then X 2^t != B S for t = i - j - k, and both sides
// are integers after multiplying by 2^max(-t, 0):
//   t >= 0: |X 2^t - B S| >= 1 and B S < 2^34, so x / scale differs from b by more than b 2^-34;
//   t <  0: |X - B S 2^-t| >= 1; either B S 2^-t < 2^25 and the difference exceeds b 2^-25, or it
//   is at least b / 2.
// Division in double moves the quotient by at most 2^-53 relative (it stays within 2^-277..2^277:
// never subnormal, never infinite) and is exact when x / scale = b. So comparing the double with b
// decides as comparing the real would.
#include "formats/quantize_fast.hpp"

#include <cmath>
#include <cstdlib>

#include "formats/codec.hpp"
#include "formats/float_guard.hpp"

namespace numemu {
namespace {

// What a finite magnitude beyond the largest value becomes.
std::uint64_t overflow_code(const Conversion& c, bool negative) {
  const Value huge{Class::finite, negative, false, 1 << 20, 1};
  return encode(*c.format, huge, c.rounding, c.overflow).code;
}

FloatPlan plan_float(const Conversion& c, float scale) {
  const Format& f = *c.format;
  const bool gap = f.field_zero == FieldZero::normal;
  const int first_exponent = gap ? -f.bias : 1 - f.bias;
  FloatPlan plan;
  plan.scale = scale;
  plan.first_binade = std::ldexp(1.0, first_exponent);
  plan.to_code = 52 - f.mantissa_bits;
  plan.to_magic = std::ldexp(1.0, plan.to_code);
  plan.largest = largest_value(f);
  plan.beyond = std::ldexp(1.0, std::ilogb(plan.largest) + 1);
  plan.smallest = smallest_value(f);
  plan.sign_shift = f.is_signed ? f.bits - 1 : 0;
  plan.hidden = gap ? std::uint64_t{1} << f.mantissa_bits : 0;
  plan.zero_has_sign = f.has_negative_zero() ? 1 : 0;
  plan.over_positive = overflow_code(c, false);
  plan.over_negative = f.is_signed ? overflow_code(c, true) : 0;

  // The boundary of tininess is a midpoint of the grid with unbounded exponents, just below the
  // smallest normal number. Its tie goes to the even code: up if that number's code is even, and
  // down, still tiny, if it is odd.
  const double ulp = std::ldexp(plan.first_binade, -f.mantissa_bits);
  const double midpoint = gap ? plan.first_binade + ulp / 2 : plan.first_binade - ulp / 4;
  const bool tie_is_tiny = gap || f.mantissa_bits == 0;
  plan.tiny_below = tie_is_tiny ? std::nextafter(midpoint, 2 * midpoint) : midpoint;
  return plan;
}

IntegerPlan plan_integer(const Conversion& c, float scale) {
  const Format& f = *c.format;
  const auto high = static_cast<double>(f.largest_code());
  const double low = !f.is_signed ? 0.0 : c.symmetric ? -high : -high - 1;
  return {scale, low, high, f.code_mask()};
}

}  // namespace

bool has_fast_path(const Conversion& c) {
  const Format& f = *c.format;
  constexpr int kModerateBias = 512;  // keeps every number of a plan a normal double
  return c.rounding.mode == RoundingMode::rne && f.bits <= 8 && std::abs(f.bias) <= kModerateBias &&
         (f.field_zero == FieldZero::subnormal ||
          (f.field_zero == FieldZero::normal && f.mantissa_bits > 0));
}

bool takes_fast_path(const Conversion& c, const float* x, std::int64_t n) {
  constexpr std::uint32_t kInfinity = 0x7f800000;
  const FloatGuard guard;
  // A sign that an unsigned format meets stays in, and makes the bits larger than an infinity's.
  return largest_masked_bits(x, n, c.format->is_signed ? 0x7fffffff : 0xffffffff) < kInfinity;
}

FlagCounts quantize_fast(const Conversion& c, const float* x, std::int64_t n, float scale,
                         std::uint8_t* codes) {
  const FloatGuard guard;
  if (c.format->kind == Kind::integer) return quantize_vectors(plan_integer(c, scale), x, n, codes);
  return quantize_vectors(plan_float(c, scale), x, n, codes);
}

}  // namespace numemu
