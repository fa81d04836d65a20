// The vector loops of the fast path, one per instruction set, dispatched at run time.
#include <bit>

#include "formats/quantize_fast.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/quantize_simd.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using Words = hn::RebindToUnsigned<Doubles>;
using DoubleVector = hn::Vec<Doubles>;
using WordVector = hn::Vec<Words>;
constexpr Doubles kDoubles;
constexpr Words kWords;

// Counts, lane by lane, how often a mask was set.
struct Counter {
  WordVector lanes = hn::Zero(kWords);
  void add(hn::Mask<Doubles> mask) {
    lanes = hn::Sub(lanes, hn::BitCast(kWords, hn::VecFromMask(kDoubles, mask)));
  }
  std::int64_t total() const {
    return static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(kWords, lanes)));
  }
};

WordVector bits_of(DoubleVector x) { return hn::BitCast(kWords, x); }
DoubleVector double_of(WordVector bits) { return hn::BitCast(kDoubles, bits); }

// kGap: field 0 is a normal binade, so zero and the smallest value are further apart than its other
// neighbours.
template <bool kGap>
struct FloatKernel {
  const FloatPlan& plan;
  Counter inexact, underflow, overflow;

  WordVector codes_of(DoubleVector x) {
    const DoubleVector quotient = hn::Div(x, hn::Set(kDoubles, plan.scale));
    const WordVector negative = hn::ShiftRight<63>(bits_of(quotient));
    const DoubleVector exact = hn::Abs(quotient);
    const DoubleVector clamped = hn::Min(exact, hn::Set(kDoubles, plan.beyond));

    // The sum with `magic` is rounded by the host at the last mantissa bit of the element's binade.
    // An odd offset of the binade's codes (only without mantissa bits) makes `magic` odd too: ties
    // go to the even code.
    const DoubleVector first_binade = hn::Set(kDoubles, plan.first_binade);
    const WordVector exponent_field = hn::Set(kWords, std::uint64_t{2047} << 52);
    const DoubleVector own_binade = double_of(hn::And(bits_of(clamped), exponent_field));
    const DoubleVector binade = hn::Max(own_binade, first_binade);
    const WordVector offset =
        hn::ShiftRightSame(hn::Sub(bits_of(binade), bits_of(first_binade)), plan.to_code);
    const WordVector magic = hn::Add(bits_of(hn::Mul(binade, hn::Set(kDoubles, plan.to_magic))),
                                     hn::And(offset, hn::Set(kWords, 1)));
    const DoubleVector sum = hn::Add(clamped, double_of(magic));
    WordVector magnitude = hn::Add(offset, hn::Sub(bits_of(sum), magic));
    DoubleVector rounded = hn::Sub(sum, double_of(magic));
    if (kGap) {
      magnitude = hn::Sub(magnitude, hn::Set(kWords, plan.hidden));
      const DoubleVector smallest = hn::Set(kDoubles, plan.smallest);
      const auto in_gap = hn::Lt(exact, smallest),
                 up = hn::Gt(exact, hn::Set(kDoubles, 0.5 * plan.smallest));
      rounded = hn::IfThenElse(in_gap, hn::IfThenElseZero(up, smallest), rounded);
      const WordVector zero_or_one =
          hn::And(bits_of(hn::VecFromMask(kDoubles, up)), hn::Set(kWords, 1));
      magnitude = hn::IfThenElse(hn::RebindMask(kWords, in_gap), zero_or_one, magnitude);
    }

    const auto over = hn::Gt(rounded, hn::Set(kDoubles, plan.largest));
    const auto changed = hn::Or(over, hn::Ne(rounded, exact));
    inexact.add(changed);
    underflow.add(hn::And(changed, hn::Lt(exact, hn::Set(kDoubles, plan.tiny_below))));
    overflow.add(over);

    const WordVector not_zero =
        bits_of(hn::VecFromMask(kDoubles, hn::Ne(rounded, hn::Zero(kDoubles))));
    const WordVector sign =
        hn::And(negative, hn::Or(not_zero, hn::Set(kWords, plan.zero_has_sign)));
    const WordVector code = hn::Or(magnitude, hn::ShiftLeftSame(sign, plan.sign_shift));
    const WordVector over_positive = hn::Set(kWords, plan.over_positive);
    const WordVector over_change = hn::Set(kWords, plan.over_positive ^ plan.over_negative);
    const WordVector over_code =
        hn::Xor(over_positive, hn::And(over_change, hn::Sub(hn::Zero(kWords), negative)));
    return hn::IfThenElse(hn::RebindMask(kWords, over), over_code, code);
  }
};

struct IntegerKernel {
  const IntegerPlan& plan;
  Counter inexact, underflow, overflow;

  WordVector codes_of(DoubleVector x) {
    // Its last bit counts ones, and it is even: the low bits of the sum are the rounded number in
    // two's complement.
    const DoubleVector magic = hn::Set(kDoubles, 0x1.8p52);
    const DoubleVector one = hn::Set(kDoubles, 1.0);
    const DoubleVector low = hn::Set(kDoubles, plan.low), high = hn::Set(kDoubles, plan.high);
    const DoubleVector quotient = hn::Div(x, hn::Set(kDoubles, plan.scale));
    const DoubleVector clamped = hn::Min(hn::Max(quotient, hn::Sub(low, one)), hn::Add(high, one));
    const DoubleVector rounded = hn::Sub(hn::Add(clamped, magic), magic);
    const DoubleVector result = hn::Min(hn::Max(rounded, low), high);
    inexact.add(hn::Ne(result, quotient));
    overflow.add(hn::Ne(result, rounded));
    return hn::And(bits_of(hn::Add(result, magic)), hn::Set(kWords, plan.mask));
  }
};

template <typename Kernel>
FlagCounts convert(Kernel kernel, const float* x, std::int64_t n, std::uint8_t* codes) {
  const hn::Rebind<float, Doubles> floats;
  const hn::Rebind<std::uint8_t, Words> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(kDoubles));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const WordVector code = kernel.codes_of(hn::PromoteTo(kDoubles, hn::LoadU(floats, x + i)));
    hn::StoreU(hn::TruncateTo(bytes, code), bytes, codes + i);
  }
  if (i < n) {  // zeros fill the last vector: they raise no flag
    float rest[hn::MaxLanes(Doubles())] = {};
    std::uint8_t rest_codes[hn::MaxLanes(Doubles())];
    for (std::int64_t j = i; j < n; ++j) rest[j - i] = x[j];
    const WordVector code = kernel.codes_of(hn::PromoteTo(kDoubles, hn::LoadU(floats, rest)));
    hn::StoreU(hn::TruncateTo(bytes, code), bytes, rest_codes);
    for (std::int64_t j = i; j < n; ++j) codes[j] = rest_codes[j - i];
  }
  return {n, kernel.inexact.total(), kernel.underflow.total(), kernel.overflow.total(), 0};
}

FlagCounts convert_floats(const FloatPlan& plan, const float* x, std::int64_t n,
                          std::uint8_t* codes) {
  if (plan.hidden != 0) return convert(FloatKernel<true>{plan, {}, {}, {}}, x, n, codes);
  return convert(FloatKernel<false>{plan, {}, {}, {}}, x, n, codes);
}

FlagCounts convert_integers(const IntegerPlan& plan, const float* x, std::int64_t n,
                            std::uint8_t* codes) {
  return convert(IntegerKernel{plan, {}, {}, {}}, x, n, codes);
}

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

}  // namespace HWY_NAMESPACE
}  // namespace numemu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu {

HWY_EXPORT(convert_floats);
HWY_EXPORT(convert_integers);
HWY_EXPORT(largest_bits);

FlagCounts quantize_vectors(const FloatPlan& plan, const float* x, std::int64_t n,
                            std::uint8_t* codes) {
  return HWY_DYNAMIC_DISPATCH(convert_floats)(plan, x, n, codes);
}

FlagCounts quantize_vectors(const IntegerPlan& plan, const float* x, std::int64_t n,
                            std::uint8_t* codes) {
  return HWY_DYNAMIC_DISPATCH(convert_integers)(plan, x, n, codes);
}

std::uint32_t largest_masked_bits(const float* x, std::int64_t n, std::uint32_t mask) {
  return HWY_DYNAMIC_DISPATCH(largest_bits)(x, n, mask);
}

}  // namespace numemu
#endif
