// The vector loops of the fast path, one per instruction set, dispatched at run time.
#include <algorithm>
#include <type_traits>

#include "formats/simd/quantize_fast.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/quantize_simd.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using Words = hn::RebindToUnsigned<Doubles>;
using Integers = hn::RebindToSigned<Doubles>;
using Singles = hn::Rebind<float, Doubles>;
using DoubleVector = hn::Vec<Doubles>;
using WordVector = hn::Vec<Words>;
using WordMask = hn::Mask<Words>;
using Step = QuantizePlan::Step;
using Low = QuantizePlan::Low;
constexpr Doubles kDoubles;
constexpr Words kWords;
constexpr Integers kIntegers;
constexpr Singles kSingles;

HWY_INLINE WordVector bits_of(DoubleVector x) { return hn::BitCast(kWords, x); }
HWY_INLINE DoubleVector double_of(WordVector bits) { return hn::BitCast(kDoubles, bits); }
HWY_INLINE WordVector set(std::uint64_t x) { return hn::Set(kWords, x); }
HWY_INLINE DoubleVector set(double x) { return hn::Set(kDoubles, x); }

// x > y, for words as signed numbers.
HWY_INLINE WordMask greater(WordVector x, WordVector y) {
  return hn::RebindMask(kWords, hn::Gt(hn::BitCast(kIntegers, x), hn::BitCast(kIntegers, y)));
}

HWY_INLINE WordMask differ(DoubleVector x, DoubleVector y) {
  return hn::RebindMask(kWords, hn::Ne(x, y));
}

// v with its last bit set where the mask is.
HWY_INLINE WordVector set_last(WordMask mask, WordVector v) {
#if NUMEMU_AVX512
  return WordVector{_mm512_mask_or_epi64(v.raw, mask.raw, v.raw, set(std::uint64_t{1}).raw)};
#else
  return hn::Or(v, hn::And(hn::VecFromMask(kWords, mask), set(std::uint64_t{1})));
#endif
}

// Counts, lane by lane, how often a mask was set.
struct Counter {
  WordVector lanes = hn::Zero(kWords);
  HWY_INLINE void add(WordMask mask) {
#if NUMEMU_AVX512
    const WordVector one = set(std::uint64_t{1});
    lanes = WordVector{_mm512_mask_add_epi64(lanes.raw, mask.raw, lanes.raw, one.raw)};
#else
    lanes = hn::Sub(lanes, hn::VecFromMask(kWords, mask));
#endif
  }
  std::int64_t total() const {
    return static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(kWords, lanes)));
  }
};

// |x / divisor|, truncated, as the bits of a double. Where random bits look at every bit of it, its
// last bit is set if something was cut off.
template <Step kStep>
HWY_INLINE WordVector quotient_of(DoubleVector x, double by) {
  const DoubleVector divisor = set(by), quotient = hn::Div(x, divisor);
  const WordVector magnitude = hn::And(bits_of(quotient), set(~std::uint64_t{0} >> 1));
  if constexpr (kStep != Step::stochastic) return magnitude;
#if HWY_NATIVE_FMA
  const DoubleVector rest = hn::NegMulAdd(quotient, divisor, x);
#else
  // 26 and 27 bits times the 24 of a float32: both products and both differences are exact.
  const DoubleVector high = double_of(hn::And(bits_of(quotient), set(~std::uint64_t{0} << 27)));
  const DoubleVector rest =
      hn::Sub(hn::Sub(x, hn::Mul(high, divisor)), hn::Mul(hn::Sub(quotient, high), divisor));
#endif
  return set_last(differ(rest, hn::Zero(kDoubles)), magnitude);
}

HWY_INLINE hn::Vec<Singles> demoted(DoubleVector x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // Highway's own makes the largest number of an infinity here.
  double from[hn::MaxLanes(Doubles())];
  float to[hn::MaxLanes(Doubles())];
  hn::StoreU(x, kDoubles, from);
  for (std::size_t i = 0; i < hn::Lanes(kDoubles); ++i) to[i] = static_cast<float>(from[i]);
  return hn::LoadU(kSingles, to);
#else
  return hn::DemoteTo(kSingles, x);
#endif
}

// yes where the number is negative; `negative` is all ones there and zero elsewhere.
HWY_INLINE WordVector sided(WordVector negative, std::uint64_t no, std::uint64_t yes) {
  return hn::Xor(set(no), hn::And(negative, set(no ^ yes)));
}

template <Step kStep, Low kLow, bool kValues>
struct Kernel {
  static constexpr bool kRandom = kStep == Step::stochastic;
  const QuantizePlan plan;  // a copy: its numbers stay in registers
  Counter inexact = {}, underflow = {}, overflow = {};

  // What a position becomes, its fraction not yet cut.
  HWY_INLINE WordVector rounded(WordVector p, WordVector negative, WordVector random) const {
    if constexpr (kStep == Step::constant) {
      return hn::Add(p, sided(negative, plan.constant, plan.constant_negative));
    } else if constexpr (kStep == Step::odd) {
      const WordVector fraction = set(plan.fraction);
      return hn::Or(p, hn::Add(hn::And(p, fraction), fraction));
    } else {
      WordVector tie = hn::And(hn::ShiftRightSame(p, plan.tie_bit), set(plan.tie_mask));
      if constexpr (kStep == Step::stochastic)
        tie = hn::Add(hn::Xor(tie, set(plan.tie_flip)), random);
      return hn::Add(hn::Add(p, set(plan.constant)), tie);
    }
  }

  // Codes in words, or values as the bits of doubles.
  HWY_INLINE WordVector convert(DoubleVector x, WordVector random) {
    const WordVector zero = hn::Zero(kWords), fraction = set(plan.fraction);
    const WordVector negative =
        hn::BitCast(kWords, hn::BroadcastSignBit(hn::BitCast(kIntegers, bits_of(x))));
    if constexpr (kStep == Step::stochastic) random = hn::ShiftLeftSame(random, plan.random_shift);

    const WordVector quotient = quotient_of<kStep>(x, plan.scale);
    const WordVector as_normal = hn::Sub(quotient, set(plan.base));  // if binades continued below
    const WordMask is_low = hn::RebindMask(kWords, hn::Lt(double_of(quotient), set(plan.below)));
    DoubleVector in_low = double_of(quotient);
    // What lies beyond an integer format's grid becomes its end, beyond the largest value too.
    if (kLow == Low::integer) in_low = hn::Min(in_low, set(plan.below));
    if (kLow == Low::gap && !hn::AllFalse(kWords, is_low))
      in_low = double_of(quotient_of<kStep>(x, plan.gap_scale));
    const DoubleVector grid = set(plan.grid), sum = hn::Add(in_low, grid);
    const WordMask cut_off = differ(hn::Sub(sum, grid), in_low);
    const WordVector steps = set_last(cut_off, hn::Sub(bits_of(sum), bits_of(grid)));
    const WordVector position =
        kLow == Low::integer ? steps : hn::IfThenElse(is_low, steps, as_normal);

    const WordVector result = rounded(position, negative, random);
    const WordVector code = hn::ShiftRightSame(result, plan.shift);
    const WordMask over = greater(code, sided(negative, plan.largest, plan.largest_negative));
    WordMask changed = hn::Ne(hn::And(position, fraction), zero);
    WordMask is_zero = hn::Eq(code, zero);
    if constexpr (kLow == Low::flush) {
      is_zero = greater(set(plan.first_normal), code);
      changed = hn::Or(changed, hn::And(is_zero, hn::Ne(quotient, zero)));
    }
    if constexpr (kLow != Low::integer) {
      const WordVector limit = set(plan.first_normal << plan.shift);
      const WordMask tiny = greater(limit, rounded(as_normal, negative, random));
      underflow.add(hn::AndNot(over, hn::And(changed, tiny)));
    }
    inexact.add(hn::Or(changed, over));
    overflow.add(over);

    if constexpr (kValues) {
      const WordVector cut = hn::AndNot(fraction, result);
      DoubleVector low = hn::Sub(double_of(hn::Add(cut, bits_of(grid))), grid);
      if constexpr (kLow == Low::gap) low = hn::Mul(low, set(plan.smallest));
      WordVector y = bits_of(low);
      if constexpr (kLow != Low::integer)
        y = hn::IfThenElse(is_low, y, hn::Add(cut, set(plan.base)));
      if constexpr (kLow == Low::flush) y = hn::IfThenZeroElse(is_zero, y);
      y = hn::Or(y, signs(negative, is_zero, std::uint64_t{1} << 63));
      return hn::IfThenElse(over, sided(negative, plan.over_value, plan.over_value_negative), y);
    } else {
      WordVector with_sign;
      if constexpr (kLow == Low::integer) {
        with_sign = hn::And(hn::Sub(hn::Xor(code, negative), negative), set(plan.code_mask));
      } else {
        with_sign = kLow == Low::flush ? hn::IfThenZeroElse(is_zero, code) : code;
        with_sign = hn::Or(with_sign, signs(negative, is_zero, plan.sign_bit));
      }
      return hn::IfThenElse(over, sided(negative, plan.over_code, plan.over_code_negative),
                            with_sign);
    }
  }

  HWY_INLINE WordVector signs(WordVector negative, WordMask is_zero, std::uint64_t bit) const {
    const WordVector sign = hn::And(negative, set(bit));
    return plan.zero_has_sign ? sign : hn::IfThenZeroElse(is_zero, sign);
  }
};

HWY_INLINE void store(WordVector v, std::uint8_t* to) {
#if NUMEMU_AVX512
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm512_cvtepi64_epi8(v.raw));
#else
  const hn::Rebind<std::uint8_t, Words> bytes;
  hn::StoreU(hn::TruncateTo(bytes, v), bytes, to);
#endif
}
HWY_INLINE void store(WordVector v, std::uint16_t* to) {
  const hn::Rebind<std::uint16_t, Words> halves;
  hn::StoreU(hn::TruncateTo(halves, v), halves, to);
}
HWY_INLINE void store(WordVector v, float* to) { hn::StoreU(demoted(double_of(v)), kSingles, to); }

std::int64_t vector_size() { return static_cast<std::int64_t>(hn::Lanes(kDoubles)); }

// One vector; inlined, so that the plan and the counts stay in registers.
template <class Kernel, class Out>
HWY_INLINE void convert_vector(Kernel& kernel, const float* x, const std::uint32_t* random,
                               Out* out) {
  const hn::Rebind<std::uint32_t, Words> halves;
  const WordVector r =
      Kernel::kRandom ? hn::PromoteTo(kWords, hn::LoadU(halves, random)) : hn::Zero(kWords);
  store(kernel.convert(hn::PromoteTo(kDoubles, hn::LoadU(kSingles, x)), r), out);
}

template <Step kStep, Low kLow, class Out>
FlagCounts convert(const QuantizePlan& plan, const float* x, std::int64_t n,
                   const std::uint32_t* random, Out* out) {
  Kernel<kStep, kLow, std::is_same_v<Out, float>> kernel{plan};
  for (std::int64_t i = 0; i < n; i += vector_size())
    convert_vector(kernel, x + i, random + i, out + i);
  return {n, kernel.inexact.total(), kernel.underflow.total(), kernel.overflow.total(), 0};
}

template <Step kStep, class Out>
FlagCounts convert_step(const QuantizePlan& plan, const float* x, std::int64_t n,
                        const std::uint32_t* random, Out* out) {
  switch (plan.low) {
    case Low::subnormal:
      return convert<kStep, Low::subnormal>(plan, x, n, random, out);
    case Low::gap:
      return convert<kStep, Low::gap>(plan, x, n, random, out);
    case Low::flush:
      return convert<kStep, Low::flush>(plan, x, n, random, out);
    default:
      return convert<kStep, Low::integer>(plan, x, n, random, out);
  }
}

template <class Out>
FlagCounts convert_all(const QuantizePlan& plan, const float* x, std::int64_t n,
                       const std::uint32_t* random, Out* out) {
  switch (plan.step) {
    case Step::constant:
      return convert_step<Step::constant>(plan, x, n, random, out);
    case Step::nearest:
      return convert_step<Step::nearest>(plan, x, n, random, out);
    case Step::odd:
      return convert_step<Step::odd>(plan, x, n, random, out);
    default:
      return convert_step<Step::stochastic>(plan, x, n, random, out);
  }
}

FlagCounts to_bytes(const QuantizePlan& plan, const float* x, std::int64_t n,
                    const std::uint32_t* random, std::uint8_t* codes) {
  return convert_all(plan, x, n, random, codes);
}
FlagCounts to_halves(const QuantizePlan& plan, const float* x, std::int64_t n,
                     const std::uint32_t* random, std::uint16_t* codes) {
  return convert_all(plan, x, n, random, codes);
}
FlagCounts to_values(const QuantizePlan& plan, const float* x, std::int64_t n,
                     const std::uint32_t* random, float* values) {
  return convert_all(plan, x, n, random, values);
}

bool fused() { return HWY_NATIVE_FMA != 0; }

}  // namespace HWY_NAMESPACE
}  // namespace numemu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu {

HWY_EXPORT(to_bytes);
HWY_EXPORT(to_halves);
HWY_EXPORT(to_values);
HWY_EXPORT(fused);
HWY_EXPORT(vector_size);

namespace {

// Calls convert(x, n, random, out) for whole vectors, then for the rest, which zeros fill up to one
// vector: they raise no flag.
template <class Out, class Convert>
FlagCounts convert_whole(const float* x, std::int64_t n, const std::uint32_t* random, Out* out,
                         const Convert& convert) {
  const std::int64_t size = HWY_DYNAMIC_DISPATCH(vector_size)(), rest = n % size, whole = n - rest;
  FlagCounts counts = convert(x, whole, random, out);
  if (rest == 0) return counts;
  constexpr int kMost = 8;
  float last[kMost] = {};
  std::uint32_t last_random[kMost] = {};
  Out last_out[kMost];
  std::copy_n(x + whole, rest, last);
  if (random != nullptr) std::copy_n(random + whole, rest, last_random);
  counts += convert(last, size, last_random, last_out);
  counts.elements = n;
  std::copy_n(last_out, rest, out + whole);
  return counts;
}

}  // namespace

FlagCounts quantize_vectors(const QuantizePlan& plan, const float* x, std::int64_t n,
                            const std::uint32_t* random, std::uint8_t* codes) {
  return convert_whole(x, n, random, codes, [&](auto... arguments) {
    return HWY_DYNAMIC_DISPATCH(to_bytes)(plan, arguments...);
  });
}
FlagCounts quantize_vectors(const QuantizePlan& plan, const float* x, std::int64_t n,
                            const std::uint32_t* random, std::uint16_t* codes) {
  return convert_whole(x, n, random, codes, [&](auto... arguments) {
    return HWY_DYNAMIC_DISPATCH(to_halves)(plan, arguments...);
  });
}
FlagCounts quantize_vectors(const QuantizePlan& plan, const float* x, std::int64_t n,
                            const std::uint32_t* random, float* values) {
  return convert_whole(x, n, random, values, [&](auto... arguments) {
    return HWY_DYNAMIC_DISPATCH(to_values)(plan, arguments...);
  });
}
bool has_fused_multiply_add() { return HWY_DYNAMIC_DISPATCH(fused)(); }

}  // namespace numemu
#endif
