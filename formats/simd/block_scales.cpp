// The loops over blocks and their scales, one set per instruction set, dispatched at run time.
#include "formats/simd/block_scales.hpp"

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/block_scales.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

HWY_INLINE WordVector magnitude_bits(const float* x) {
  return hn::And(bits_of(hn::LoadU(kFloats, x)), set(0x7fffffffU));
}

// Lane by lane the largest magnitude of one block.
HWY_INLINE WordVector lane_maxima(const float* x, std::int64_t size) {
  WordVector largest = magnitude_bits(x);
  for (std::int64_t i = lanes(); i < size; i += lanes())
    largest = hn::Max(largest, magnitude_bits(x + i));
  return largest;
}

void maxima(const float* x, std::int64_t blocks, std::int64_t size, std::uint32_t* bits) {
  std::int64_t b = 0;
#if HWY_TARGET != HWY_SCALAR
  // Four blocks at a time: each 128-bit part ends with one maximum of each block in its four words.
  const hn::Repartition<std::uint64_t, Words> pairs;
  constexpr int kTogether = 4;
  alignas(64) std::uint32_t parts[hn::MaxLanes(Words())];
  for (; b + kTogether <= blocks; b += kTogether, x += kTogether * size) {
    const WordVector p = lane_maxima(x, size), q = lane_maxima(x + size, size);
    const WordVector r = lane_maxima(x + 2 * size, size), s = lane_maxima(x + 3 * size, size);
    const WordVector pq =
        hn::Max(hn::InterleaveLower(kWords, p, q), hn::InterleaveUpper(kWords, p, q));
    const WordVector rs =
        hn::Max(hn::InterleaveLower(kWords, r, s), hn::InterleaveUpper(kWords, r, s));
    const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, pq), hn::BitCast(pairs, rs));
    const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, pq), hn::BitCast(pairs, rs));
    const WordVector all = hn::Max(hn::BitCast(kWords, low), hn::BitCast(kWords, high));
#if NUMEMU_AVX512
    const __m256i half =
        _mm256_max_epu32(_mm512_castsi512_si256(all.raw), _mm512_extracti64x4_epi64(all.raw, 1));
    const __m128i quarter =
        _mm_max_epu32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bits + b), quarter);
    (void)parts;
#elif HWY_TARGET == HWY_AVX2
    const __m128i half =
        _mm_max_epu32(_mm256_castsi256_si128(all.raw), _mm256_extracti128_si256(all.raw, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bits + b), half);
    (void)parts;
#else
    hn::Store(all, kWords, parts);
    for (int k = 0; k < kTogether; ++k) {
      bits[b + k] = parts[k];
      for (std::int64_t lane = k + kTogether; lane < lanes(); lane += kTogether)
        bits[b + k] = std::max(bits[b + k], parts[lane]);
    }
#endif
  }
#endif
  for (; b < blocks; ++b, x += size)
    bits[b] = hn::GetLane(hn::MaxOfLanes(kWords, lane_maxima(x, size)));
}

std::uint32_t finite_maximum(const float* x, std::int64_t n) {
  constexpr std::int32_t kInfinity = 0x7f800000, kMagnitude = 0x7fffffff;
  const hn::RebindToSigned<Floats> integers;  // compared in one instruction
  const auto infinity = hn::Set(integers, kInfinity);
  auto largest = hn::Zero(integers);
  std::int64_t i = 0;
  for (; i + lanes() <= n; i += lanes()) {
    const auto bits = hn::BitCast(integers, magnitude_bits(x + i));
    largest = hn::Max(largest, hn::IfThenElseZero(hn::Lt(bits, infinity), bits));
  }
  std::int32_t result = hn::GetLane(hn::MaxOfLanes(integers, largest));
  for (; i < n; ++i) {
    const std::int32_t bits = std::bit_cast<std::int32_t>(x[i]) & kMagnitude;
    if (bits < kInfinity) result = std::max(result, bits);
  }
  return static_cast<std::uint32_t>(result);
}

FiniteRange range_of(const float* x, std::int64_t n) {
  constexpr std::uint32_t kInfinity = 0x7f800000, kMagnitude = 0x7fffffff;
  const FloatVector infinity = float_of(set(kInfinity)), largest = float_of(set(kInfinity - 1));
  FloatVector low = infinity, high = hn::Neg(infinity);
  FloatMask all = hn::Eq(infinity, infinity);
  std::int64_t i = 0;
  for (; i + lanes() <= n; i += lanes()) {
    const FloatVector v = hn::LoadU(kFloats, x + i);
    const FloatMask finite = hn::Le(hn::Abs(v), largest);
    low = hn::Min(low, hn::IfThenElse(finite, v, low));
    high = hn::Max(high, hn::IfThenElse(finite, v, high));
    all = hn::And(all, finite);
  }
  FiniteRange range{hn::GetLane(hn::MinOfLanes(kFloats, low)),
                    hn::GetLane(hn::MaxOfLanes(kFloats, high)), hn::AllTrue(kFloats, all)};
  for (; i < n; ++i) {
    const bool finite = (std::bit_cast<std::uint32_t>(x[i]) & kMagnitude) < kInfinity;
    range.all = range.all && finite;
    if (!finite) continue;
    range.low = std::min(range.low, x[i]);
    range.high = std::max(range.high, x[i]);
  }
  if (range.low > range.high) range.low = range.high = 0;
  return range;
}

BlockSurvey survey(const std::uint32_t* bits, std::int64_t blocks, float* amax) {
  const WordVector infinity = set(0x7f800000U), zero = hn::Zero(kWords);
  WordVector nonfinite = zero, zeros = zero;  // counted downwards: a mask is -1
  const auto one_if = [&](auto mask) HWY_ATTR { return hn::VecFromMask(kWords, mask); };
  std::int64_t b = 0;
  for (; b + lanes() <= blocks; b += lanes()) {
    const WordVector v = hn::LoadU(kWords, bits + b);
    const auto finite = hn::Lt(v, infinity);
    nonfinite = hn::Sub(nonfinite, one_if(hn::Not(finite)));
    zeros = hn::Sub(zeros, one_if(hn::Eq(v, zero)));
    hn::StoreU(hn::IfThenElse(hn::RebindMask(kFloats, finite), float_of(v), set(1.0F)), kFloats,
               amax + b);
  }
  BlockSurvey result{hn::GetLane(hn::SumOfLanes(kWords, nonfinite)),
                     hn::GetLane(hn::SumOfLanes(kWords, zeros))};
  for (; b < blocks; ++b) {
    const bool finite = bits[b] < 0x7f800000U;
    result.nonfinite += finite ? 0 : 1;
    result.zero += bits[b] == 0 ? 1 : 0;
    amax[b] = finite ? std::bit_cast<float>(bits[b]) : 1.0F;
  }
  return result;
}

void quotients(const float* x, std::int64_t n, float divisor, float* y) {
  const FloatVector by = set(divisor);
  for (std::int64_t i = 0; i < n; i += lanes())
    hn::StoreU(hn::Div(hn::LoadU(kFloats, x + i), by), kFloats, y + i);
}

// Below this scale a subnormal element may matter.
constexpr std::int32_t kSmallScale = -60;
// Elements so many binades below the scale are all alike: as good as nothing.
constexpr std::int32_t kNothing = 100;

bool powers_from(const std::int32_t* exponents, const float* amax, std::int64_t blocks,
                 std::int32_t shift, std::int32_t highest, float* scale, float* inverse, float* low,
                 std::uint32_t* alone) {
  const hn::RebindToSigned<Floats> integers;
  using IntegerVector = hn::Vec<decltype(integers)>;
  const auto all = [&](std::int32_t v) HWY_ATTR { return hn::Set(integers, v); };
  const auto power = [&](IntegerVector e) HWY_ATTR {  // 2^e, e in -127..127
    const IntegerVector bits = hn::ShiftLeft<23>(hn::Add(e, all(127)));
    return hn::BitCast(kFloats, hn::Max(bits, all(0x400000)));
  };
  WordVector some = hn::Zero(kWords);
  for (std::int64_t b = 0; b < blocks; b += lanes()) {
    const IntegerVector e = hn::Add(hn::LoadU(integers, exponents + b), all(shift));
    const auto outside = hn::Or(hn::Lt(e, all(-127)), hn::Gt(e, all(highest)));
    const auto zero =
        hn::RebindMask(integers, hn::Eq(hn::LoadU(kFloats, amax + b), hn::Zero(kFloats)));
    const IntegerVector safe = hn::IfThenZeroElse(hn::Or(outside, zero), e);
    const auto left_out = hn::BitCast(kWords, hn::IfThenElseZero(outside, all(1)));
    some = hn::Or(some, left_out);
    // 2^(e - kNothing), at least the smallest normal number; 0 where subnormal elements count.
    const auto small = hn::Lt(safe, all(kSmallScale));
    const IntegerVector least = hn::Max(hn::Sub(safe, all(kNothing)), all(-126));
    hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(kFloats, small), power(least)), kFloats, low + b);
    hn::StoreU(left_out, kWords, alone + b);
    hn::StoreU(power(safe), kFloats, scale + b);
    hn::StoreU(power(hn::Neg(safe)), kFloats, inverse + b);
  }
  return hn::GetLane(hn::MaxOfLanes(kWords, some)) != 0;
}

void products(const float* factors, std::int64_t blocks, float unit, float* scale, float* rest,
              float* inverse) {
  const FloatVector u = set(unit), one = set(1.0F), zero = hn::Zero(kFloats);
  for (std::int64_t b = 0; b < blocks; b += lanes()) {
    const FloatVector f = hn::LoadU(kFloats, factors + b), product = hn::Mul(f, u);
    const FloatVector inverted = hn::Div(one, product);
    hn::StoreU(product, kFloats, scale + b);
    hn::StoreU(hn::MulSub(f, u, product), kFloats, rest + b);
    hn::StoreU(hn::IfThenZeroElse(hn::Eq(product, zero), inverted), kFloats, inverse + b);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {

HWY_EXPORT(maxima);
HWY_EXPORT(finite_maximum);
HWY_EXPORT(range_of);
HWY_EXPORT(survey);
HWY_EXPORT(quotients);
HWY_EXPORT(powers_from);
HWY_EXPORT(products);

void block_maxima(const float* x, std::int64_t blocks, std::int64_t size, std::uint32_t* bits) {
  HWY_DYNAMIC_DISPATCH(maxima)(x, blocks, size, bits);
}
std::uint32_t largest_finite(const float* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(finite_maximum)(x, n);
}
FiniteRange finite_range(const float* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(range_of)(x, n);
}
BlockSurvey survey_maxima(const std::uint32_t* bits, std::int64_t blocks, float* amax) {
  return HWY_DYNAMIC_DISPATCH(survey)(bits, blocks, amax);
}
void divide_all(const float* x, std::int64_t n, float divisor, float* y) {
  HWY_DYNAMIC_DISPATCH(quotients)(x, n, divisor, y);
}
bool powers_of_two(const std::int32_t* exponents, const float* amax, std::int64_t blocks,
                   std::int32_t shift, std::int32_t highest, float* scale, float* inverse,
                   float* low, std::uint32_t* alone) {
  return HWY_DYNAMIC_DISPATCH(powers_from)(exponents, amax, blocks, shift, highest, scale, inverse,
                                           low, alone);
}
void split_products(const float* factors, std::int64_t blocks, float unit, float* scale,
                    float* rest, float* inverse) {
  HWY_DYNAMIC_DISPATCH(products)(factors, blocks, unit, scale, rest, inverse);
}

}  // namespace numemu::simd
#endif
