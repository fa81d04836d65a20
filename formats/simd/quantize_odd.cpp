// The float32 loops around the fast path: quotients rounded to odd, products, the test of the
// elements; dispatched at run time.
#include "formats/simd/quantize_odd.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <tuple>

#include "formats/float32_converter.hpp"
#include "formats/float_guard.hpp"
#include "formats/interned.hpp"
#include "formats/simd/quantize_fast.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/quantize_odd.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As the bits of a float32: 2^-102 and 2^127.
constexpr std::uint32_t kSmallestDividend = 25U << 23, kLargestQuotient = 254U << 23;

std::uint32_t largest_bits(const float* x, std::int64_t n, std::uint32_t mask) {
  const hn::ScalableTag<std::uint32_t> words;
  const hn::RebindToFloat<decltype(words)> floats;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(words));
  auto largest = hn::Zero(words);
  const auto kept = hn::Set(words, mask);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    largest = hn::Max(largest, hn::And(hn::BitCast(words, hn::LoadU(floats, x + i)), kept));
  std::uint32_t result = hn::GetLane(hn::MaxOfLanes(words, largest));
  for (; i < n; ++i) {
    const std::uint32_t last = std::bit_cast<std::uint32_t>(x[i]) & mask;
    if (last > result) result = last;
  }
  return result;
}

void multiply(float* x, std::int64_t n, float factor) {
  const hn::ScalableTag<float> floats;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(floats));
  const auto by = hn::Set(floats, factor);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Mul(hn::LoadU(floats, x + i), by), floats, x + i);
  for (; i < n; ++i) x[i] *= factor;
}

bool divide(const float* x, std::int64_t n, float scale, float* q) {
  const hn::ScalableTag<float> floats;
  const hn::RebindToUnsigned<decltype(floats)> words;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(floats));
  const auto divisor = hn::Set(floats, scale);
  const auto one = hn::Set(words, 1), no_sign = hn::Set(words, 0x7fffffff);
  auto smallest = no_sign, largest = hn::Zero(words);  // of the bits, zeros left out of the first
  const auto divide_vector = [&](const float* from, float* to) HWY_ATTR {
    const auto element = hn::LoadU(floats, from), quotient = hn::Div(element, divisor);
    const auto magnitude = hn::And(hn::BitCast(words, element), no_sign);
    smallest = hn::Min(smallest, hn::Sub(magnitude, one));
    largest = hn::Max(largest, hn::And(hn::BitCast(words, quotient), no_sign));
    const auto rest = hn::NegMulAdd(quotient, divisor, element);
    const auto cut = hn::RebindMask(words, hn::Ne(rest, hn::Zero(floats)));
    const auto bits = hn::BitCast(words, quotient);
    hn::StoreU(hn::BitCast(floats, hn::IfThenElse(cut, hn::Or(bits, one), bits)), floats, to);
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) divide_vector(x + i, q + i);
  if (i < n) {
    float last[hn::MaxLanes(floats)] = {}, last_q[hn::MaxLanes(floats)];
    std::copy_n(x + i, n - i, last);
    divide_vector(last, last_q);
    std::copy_n(last_q, n - i, q + i);
  }
  return hn::GetLane(hn::MinOfLanes(words, smallest)) >= kSmallestDividend - 1 &&
         hn::GetLane(hn::MaxOfLanes(words, largest)) < kLargestQuotient;
}

void divide_wide(const float* x, std::int64_t n, double divisor, float* q) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> floats;
  const hn::RebindToUnsigned<decltype(floats)> words;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(wide));
  const auto by = hn::Set(wide, divisor), yes = hn::Set(wide, 1.0);
  const auto one = hn::Set(words, 1);
  const auto divide_vector = [&](const float* from, float* to) HWY_ATTR {
    const auto element = hn::LoadU(floats, from);
    const auto quotient = hn::Div(hn::PromoteTo(wide, element), by);
    const auto cut = hn::DemoteTo(floats, quotient);
    const auto inexact = hn::IfThenElseZero(hn::Ne(hn::PromoteTo(wide, cut), quotient), yes);
    const auto odd = hn::IfThenElseZero(
        hn::RebindMask(words, hn::Ne(hn::DemoteTo(floats, inexact), hn::Zero(floats))), one);
    const auto result = hn::BitCast(floats, hn::Or(hn::BitCast(words, cut), odd));
    hn::StoreU(hn::IfThenElse(hn::Eq(element, hn::Zero(floats)), element, result), floats, to);
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) divide_vector(x + i, q + i);
  if (i == n) return;
  float last[hn::MaxLanes(wide)] = {}, last_q[hn::MaxLanes(wide)];
  std::copy_n(x + i, n - i, last);
  divide_vector(last, last_q);
  std::copy_n(last_q, n - i, q + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu {

HWY_EXPORT(largest_bits);
HWY_EXPORT(multiply);
HWY_EXPORT(divide);
HWY_EXPORT(divide_wide);

std::uint32_t largest_masked_bits(const float* x, std::int64_t n, std::uint32_t mask) {
  return HWY_DYNAMIC_DISPATCH(largest_bits)(x, n, mask);
}
void multiply_in_place(float* x, std::int64_t n, float factor) {
  HWY_DYNAMIC_DISPATCH(multiply)(x, n, factor);
}
bool odd_quotients(const float* x, std::int64_t n, float scale, float* q) {
  return HWY_DYNAMIC_DISPATCH(divide)(x, n, scale, q);
}
void odd_quotients_wide(const float* x, std::int64_t n, double divisor, float* q) {
  HWY_DYNAMIC_DISPATCH(divide_wide)(x, n, divisor, q);
}

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
  return Interned::find<Plans>(c.key(),
                               [&] { return std::make_unique<const Plans>(make_plans(c)); });
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
#endif
