// Quotients rounded to odd as input of the float32 conversion loops, with the proof.
//
// A number rounded to odd with 24 bits lies on the same side of every number of at most 23 bits as
// the real does, and equals one only if the real does. Conversions need nothing more: they
// compare with values, midpoints (M + 2 bits) and, for sr(n), with the 2^n-th parts of a gap and
// their midpoints (M + n + 2 bits), here M + n <= 21. Only formats with float32's exponents
// distinguish numbers below 2^-125, and subnormal float32 numbers are fine enough for them: they
// are cut and set odd like all others.
//
// The rest x - q * scale of a truncated quotient q is a multiple of 2^-46 times their binades, so
// for |x| >= 2^-102 it is no smaller than the smallest float32, and a fused multiply-add that
// rounds toward zero gives zero only for zero. (With a power of two q * scale is exact and needs no
// fusing.)
#include "formats/simd/quantize_odd.hpp"

#include <bit>
#include <cmath>
#include <memory>
#include <tuple>

#include "formats/float32_converter.hpp"
#include "formats/float_guard.hpp"
#include "formats/interned.hpp"
#include "formats/simd/quantize_fast.hpp"

namespace numemu {
namespace {

// What random bits must not exceed together with M.
constexpr int kRandomAndMantissa = 21;

void drop_nan_sign(simd::Special& special) {
  if (std::isnan(special.value)) special.value = std::bit_cast<float>(std::uint32_t{0x7fc00000});
}

}  // namespace

bool odd_determines(const Conversion& c) {
  const Format& f = *c.format;
  const int mantissa_bits = f.kind == Kind::integer ? f.bits : f.mantissa_bits;
  const int random_bits = c.rounding.stochastic() ? c.rounding.random_bits : 0;
  return mantissa_bits + random_bits <= kRandomAndMantissa;
}

OddQuotients::Plans OddQuotients::make_plans(const Conversion& c) {
  Plans plans;
  plans.plan = simd::make_plan(c);
  if (plans.plan) {
    drop_nan_sign(plans.plan->over);
    drop_nan_sign(plans.plan->over_negative);
  } else {
    plans.shared = simd::make_shared_exponent_plan(c);
  }
  return plans;
}

// The thresholds of a plan take some hundred conversions to find, so each plan is made once.
const OddQuotients::Plans& OddQuotients::plans_of(const Conversion& c) {
  const auto key = std::make_tuple(c.format->key(), c.rounding.mode, c.rounding.variant,
                                   c.rounding.random_bits, c.overflow, c.symmetric);
  return Interned::find<Plans>(key, [&] { return std::make_unique<const Plans>(make_plans(c)); });
}

std::optional<OddQuotients> OddQuotients::make(const Conversion& c, float scale) {
  const Format& f = *c.format;
  if (f.bits > 16 || !std::isnormal(scale)) return {};
  int exponent = 0;
  const bool power = std::frexp(scale, &exponent) == 0.5F;
  if (!power && !has_fused_multiply_add()) return {};
  OddQuotients result;
  result.plans_ = &plans_of(c);
  result.scale_ = scale;
  const bool shared = result.plans_->shared.has_value();
  if (!result.plans_->plan && !shared) return {};
  const bool exact = scale == 1 || (power && !shared);  // as far as it matters
  if (c.rounding.stochastic() && !exact && !odd_determines(c)) return {};
  return result;
}

std::optional<FlagCounts> OddQuotients::convert(simd::Arrays arrays) const {
  alignas(64) float quotients[kMost];
  alignas(64) std::uint8_t flags[kMost];
  arrays.flags = flags;
  if (scale_ != 1) {
    const FloatGuard guard(HostRounding::toward_zero);
    if (!odd_quotients(arrays.x, arrays.n, scale_, quotients)) return {};
    arrays.x = quotients;
  }
  if (plans_->plan) {
    const FloatGuard guard(plans_->plan->host);
    simd::convert_vectors(*plans_->plan, arrays);
  } else {
    simd::convert_shared_exponent(*plans_->shared, arrays);
  }
  return count_flags(flags, arrays.n);
}

}  // namespace numemu
