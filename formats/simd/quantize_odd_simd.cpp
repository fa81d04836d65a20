// The float32 loops around the fast path: quotients rounded to odd, products, the test of the
// elements; dispatched at run time.
#include <algorithm>
#include <bit>

#include "formats/simd/quantize_fast.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/quantize_odd_simd.cpp"
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

}  // namespace numemu
#endif
