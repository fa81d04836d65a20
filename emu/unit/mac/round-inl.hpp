// One multiply-add rounded to the register, in vectors of float or double; once per Highway target.
//
// The host rounds to nearest throughout. In the binade of m = 2^e (signed as the sum t) the number
// t + m * 2^(P - 1 - M), P the host's precision, has its last bit at 2^(e - M): forming it rounds t
// to the register's step, and taking m * 2^(P - 1 - M) off again is exact. Products with m are
// exact, so it does not matter whether the host fuses them.
#if defined(NUMEMU_MAC_ROUND_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_MAC_ROUND_INL
#undef NUMEMU_MAC_ROUND_INL
#else
#define NUMEMU_MAC_ROUND_INL
#endif

#include <hwy/highway.h>

#include "emu/unit/mac/plan.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::mac::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#undef NUMEMU_MAC_AVX512
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
#define NUMEMU_MAC_AVX512 1
#else
#define NUMEMU_MAC_AVX512 0
#endif

/// x with one more unit in the last place of its bits where `mask` is set (`amount` -1: one less).
template <class D, class V = hn::Vec<D>, class M = hn::Mask<D>>
HWY_INLINE V AddUnits(D d, V x, M mask, int amount) {
  const hn::RebindToSigned<D> integers;
  const auto units = hn::Set(integers, static_cast<hn::TFromD<decltype(integers)>>(amount));
  const auto masked = hn::IfThenElseZero(hn::RebindMask(integers, mask), units);
  return hn::BitCast(d, hn::Add(hn::BitCast(integers, x), masked));
}

/// x with its last bit set where `mask` is set.
template <class D, class V = hn::Vec<D>, class M = hn::Mask<D>>
HWY_INLINE V SetLastBit(D d, V x, M mask) {
  const hn::RebindToUnsigned<D> words;
  const auto bits = hn::BitCast(words, x);
#if NUMEMU_MAC_AVX512
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const __m512i set = _mm512_mask_or_epi32(bits.raw, mask.raw, bits.raw, _mm512_set1_epi32(1));
    return hn::BitCast(d, hn::Vec<decltype(words)>{set});
  } else {
    const __m512i set = _mm512_mask_or_epi64(bits.raw, mask.raw, bits.raw, _mm512_set1_epi64(1));
    return hn::BitCast(d, hn::Vec<decltype(words)>{set});
  }
#else
  const auto last = hn::IfThenElseZero(hn::RebindMask(words, mask), hn::Set(words, 1));
  return hn::BitCast(d, hn::Or(bits, last));
#endif
}

/// a * b + c rounded to odd: itself where the host holds it, else cut toward zero with the last bit
/// set. The product is exact and no sum overflows (plan.cpp).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MulAddToOdd(D d, V a, V b, V c) {
#if NUMEMU_MAC_AVX512
  constexpr int kZero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  constexpr int kUp = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
  constexpr int kDown = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const V up{_mm512_fmadd_round_ps(a.raw, b.raw, c.raw, kUp)};
    const V down{_mm512_fmadd_round_ps(a.raw, b.raw, c.raw, kDown)};
    const hn::Mask<D> inexact{_mm512_cmp_ps_mask(up.raw, down.raw, _CMP_NEQ_OQ)};
    return SetLastBit(d, V{_mm512_fmadd_round_ps(a.raw, b.raw, c.raw, kZero)}, inexact);
  } else {
    const V up{_mm512_fmadd_round_pd(a.raw, b.raw, c.raw, kUp)};
    const V down{_mm512_fmadd_round_pd(a.raw, b.raw, c.raw, kDown)};
    const hn::Mask<D> inexact{_mm512_cmp_pd_mask(up.raw, down.raw, _CMP_NEQ_OQ)};
    return SetLastBit(d, V{_mm512_fmadd_round_pd(a.raw, b.raw, c.raw, kZero)}, inexact);
  }
#else
  // Knuth's TwoSum gives the rounding error, exactly; NaN (of an infinite sum) counts as none.
  const V product = hn::Mul(a, b), sum = hn::Add(product, c);
  const V c_part = hn::Sub(sum, product);
  const V error = hn::Add(hn::Sub(product, hn::Sub(sum, c_part)), hn::Sub(c, c_part));
  const auto inexact = hn::Gt(hn::Abs(error), hn::Zero(d));
  const hn::RebindToSigned<D> integers;
  const auto opposed = hn::BitCast(integers, hn::Xor(error, sum));
  const auto beyond = hn::And(inexact, hn::RebindMask(d, hn::Lt(opposed, hn::Zero(integers))));
  return SetLastBit(d, AddUnits(d, sum, beyond, -1), inexact);
#endif
}

/// The power of two at or below |t| with the sign of t.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V BinadeOf(D d, V t) {
  const hn::RebindToUnsigned<D> words;
  const auto kept = sizeof(hn::TFromD<D>) == 4 ? 0xff800000u : 0xfff0000000000000u;
  return hn::And(t, hn::BitCast(d, hn::Set(words, static_cast<hn::TFromD<decltype(words)>>(kept))));
}

/// BinadeOf(), at least `first` in magnitude.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V BinadeFrom(D d, V t, V first) {
  const V power = BinadeOf(d, t);
#if NUMEMU_MAC_AVX512
  constexpr int kLargerMagnitudeSignOfFirst = 0x3;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return V{_mm512_range_ps(power.raw, first.raw, kLargerMagnitudeSignOfFirst)};
  } else {
    return V{_mm512_range_pd(power.raw, first.raw, kLargerMagnitudeSignOfFirst)};
  }
#else
  return hn::Or(hn::Max(hn::Abs(power), first), hn::And(t, hn::SignBit(d)));
#endif
}

/// t + m * beside toward zero.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SumTowardZero(D d, V t, V m, V beside) {
#if NUMEMU_MAC_AVX512
  constexpr int kZero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  (void)d;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return V{_mm512_fmadd_round_ps(m.raw, beside.raw, t.raw, kZero)};
  } else {
    return V{_mm512_fmadd_round_pd(m.raw, beside.raw, t.raw, kZero)};
  }
#else
  const V sum = hn::MulAdd(m, beside, t), y = hn::NegMulAdd(m, beside, sum);
  return AddUnits(d, sum, hn::Gt(hn::Abs(y), hn::Abs(t)), -1);
#endif
}

/// Whether x or y may lie beyond `largest`; NaN does not count.
template <class D, class V = hn::Vec<D>>
HWY_INLINE bool AnyBeyond(D d, V x, V y, V largest) {
#if NUMEMU_MAC_AVX512
  // The larger magnitude of two numbers; of a number and a NaN the number.
  constexpr int kLargerMagnitude = 0xb;
  (void)d;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const __m512 larger = _mm512_range_ps(x.raw, y.raw, kLargerMagnitude);
    return _mm512_cmp_ps_mask(larger, largest.raw, _CMP_GT_OQ) != 0;
  } else {
    const __m512d larger = _mm512_range_pd(x.raw, y.raw, kLargerMagnitude);
    return _mm512_cmp_pd_mask(larger, largest.raw, _CMP_GT_OQ) != 0;
  }
#else
  return !hn::AllFalse(d, hn::Or(hn::Gt(hn::Abs(x), largest), hn::Gt(hn::Abs(y), largest)));
#endif
}

/// The constants in every lane.
template <class D>
struct Numbers {
  using V = hn::Vec<D>;

  const Constants<hn::TFromD<D>>* constants;
  V first, beside, step, half, cut_beside, cut_half, beside_and_step, sign_kept, largest;
  V lowest, highest, modulus, reciprocal;

  HWY_INLINE Numbers(D d, const Constants<hn::TFromD<D>>& c) : constants(&c) {
    first = hn::Set(d, c.first);
    beside = hn::Set(d, c.beside);
    step = hn::Set(d, c.step);
    half = hn::Set(d, c.half);
    cut_beside = hn::Set(d, c.cut_beside);
    cut_half = hn::Set(d, c.cut_half);
    beside_and_step = hn::Set(d, c.beside_and_step);
    sign_kept = hn::Set(d, c.sign_kept);
    largest = hn::Set(d, c.largest);
    lowest = hn::Set(d, c.lowest);
    highest = hn::Set(d, c.highest);
    modulus = hn::Set(d, c.modulus);
    reciprocal = hn::Set(d, c.reciprocal);
  }
};

/// t to the nearest multiple of m * 2^(1 - P) * beside; of two, the even one.
template <class V>
HWY_INLINE V Nearest(V t, V m, V beside) {
  return hn::NegMulAdd(m, beside, hn::MulAdd(m, beside, t));
}

/// The other neighbour where t lies half way (m * half) from its nearest, y, and `where` is true.
template <class V, class Where>
HWY_INLINE V TieToOther(V t, V y, V m, V half, const Where& where) {
  const V rest = hn::Sub(t, y);
  const auto tie = where(rest, hn::Mul(m, half));
  return hn::Add(y, hn::IfThenElseZero(tie, hn::Add(rest, rest)));
}

/// t (rounded to odd) at the register's step beside m; the sign of a zero is lost.
template <Rule kRule, class D, class V = hn::Vec<D>>
HWY_INLINE V Narrow(D d, const Numbers<D>& c, V t, V m, const hn::TFromD<D>* random) {
  const V nearest = Nearest(t, m, c.beside);
  if constexpr (kRule == Rule::plain || kRule == Rule::even) return nearest;
  if constexpr (kRule == Rule::away) {
    // A rest on t's own side is a tie that went toward zero.
    const auto own_side = [](V rest, V half) HWY_ATTR { return hn::Eq(rest, half); };
    return TieToOther(t, nearest, m, c.half, own_side);
  }
  if constexpr (kRule == Rule::up || kRule == Rule::down) {
    const V step = hn::Mul(hn::Abs(m), c.step);
    if constexpr (kRule == Rule::up)
      return hn::Add(nearest, hn::IfThenElseZero(hn::Lt(nearest, t), step));
    return hn::Sub(nearest, hn::IfThenElseZero(hn::Gt(nearest, t), step));
  }
  if constexpr (kRule == Rule::zero)
    return hn::NegMulAdd(m, c.beside, SumTowardZero(d, t, m, c.beside));
  if constexpr (kRule == Rule::odd) {
    const V sum = SumTowardZero(d, t, m, c.beside), y = hn::NegMulAdd(m, c.beside, sum);
    const auto inexact = hn::Or(hn::Lt(y, t), hn::Gt(y, t));
    return hn::NegMulAdd(m, c.beside, SetLastBit(d, sum, inexact));
  }
  // Stochastic: the fraction cut to its bits; plus one step and the random part of a step (random
  // is 2^-M (1 + r 2^-n)), exact because room was left; cut to a step; minus the one step.
  V cut = Nearest(t, m, c.cut_beside);
  if constexpr (kRule == Rule::random_cut)
    cut = hn::NegMulAdd(m, c.cut_beside, SumTowardZero(d, t, m, c.cut_beside));
  if constexpr (kRule == Rule::random_odd) {
    const auto either_side = [](V rest, V half)
                                 HWY_ATTR { return hn::Eq(hn::Abs(rest), hn::Abs(half)); };
    cut = TieToOther(t, cut, m, c.cut_half, either_side);
  }
  const V raised = hn::MulAdd(m, hn::Load(d, random), cut);
  return hn::NegMulAdd(m, c.beside_and_step, SumTowardZero(d, raised, m, c.beside));
}

/// y, or its replacement if it is not a number of the register: overflow, infinity, NaN. Rare, so
/// its constants stay in memory.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Replaced(D d, const Numbers<D>& c, V t, V y) {
  const Constants<hn::TFromD<D>>& k = *c.constants;
  const auto negative = hn::Lt(t, hn::Zero(d));
  const auto signed_one = [d, negative](const hn::TFromD<D>* values) HWY_ATTR {
    return hn::IfThenElse(negative, hn::Set(d, values[1]), hn::Set(d, values[0]));
  };
  const V special = hn::IfThenElse(hn::IsInf(t), signed_one(k.infinity),
                                   hn::IfThenElse(hn::IsNaN(t), t, signed_one(k.overflow)));
  return hn::IfThenElse(hn::Le(hn::Abs(y), c.largest), y, special);
}

/// Two's complement: saturated, then modulo 2^bits (idle after saturation).
template <class V, class D>
HWY_INLINE V Wrapped(D d, const Numbers<D>& c, V y) {
  const V held = hn::Min(hn::Max(y, c.lowest), c.highest);
  const V turns = hn::Floor(hn::MulAdd(held, c.reciprocal, hn::Set(d, hn::TFromD<D>(0.5))));
  return hn::NegMulAdd(turns, c.modulus, held);
}

/// One multiply-add into the register but for what happens beyond its ends: t, and t rounded.
template <class V>
struct Rounded {
  V exact, rounded;
};

/// t = a * b + sum, where it is zero with the sign that IEEE 754 gives it under rounding down:
/// minus unless both addends are positive zeros. The product is exact, so is its sign.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ZeroFromBelow(D d, V t, V a, V b, V sum) {
  const V minus = hn::And(hn::Or(hn::Xor(a, b), sum), hn::SignBit(d));
  return hn::IfThenElse(hn::Eq(t, hn::Zero(d)), minus, t);
}

template <Rule kRule, Ends kEnds, class D, class V = hn::Vec<D>>
HWY_INLINE Rounded<V> MulAddRounded(D d, const Numbers<D>& c, V a, V b, V sum,
                                    const hn::TFromD<D>* random) {
  V t = sum;
  if constexpr (kRule == Rule::plain || kRule == Rule::none) {
    t = hn::MulAdd(a, b, sum);
  } else {
    t = MulAddToOdd(d, a, b, sum);
  }
  if constexpr (kRule == Rule::down && kEnds == Ends::guarded) t = ZeroFromBelow(d, t, a, b, sum);
  if constexpr (kRule == Rule::none) {
    return {t, t};
  } else if constexpr (kEnds == Ends::free) {
    return {t, Narrow<kRule>(d, c, t, BinadeOf(d, t), random)};
  } else if constexpr (kEnds == Ends::guarded) {
    const V y = Narrow<kRule>(d, c, t, BinadeFrom(d, t, c.first), random);
    return {t, hn::OrAnd(y, t, c.sign_kept)};
  } else {
    const V m = hn::Or(hn::And(t, hn::SignBit(d)), c.first);
    return {t, Narrow<kRule>(d, c, t, m, random)};
  }
}

template <class V>
struct Pair {
  V first, second;
};

/// sum <- the register after a * b + sum, for two vectors; random: their random numbers.
template <Rule kRule, Ends kEnds, class D, class V = hn::Vec<D>>
HWY_INLINE void Step(D d, const Numbers<D>& c, V a, const Pair<V>& b, Pair<V>& sum,
                     const hn::TFromD<D>* random) {
  const auto x = MulAddRounded<kRule, kEnds>(d, c, a, b.first, sum.first, random);
  const auto y = MulAddRounded<kRule, kEnds>(d, c, a, b.second, sum.second, random + hn::Lanes(d));
  sum = {x.rounded, y.rounded};
  if constexpr (kEnds == Ends::guarded) {
    // Rounding is monotonic: where |t| is at most the largest number, so is |y|. NaN needs no help.
    if (HWY_UNLIKELY(AnyBeyond(d, x.exact, y.exact, c.largest))) {
      sum = {Replaced(d, c, x.exact, x.rounded), Replaced(d, c, y.exact, y.rounded)};
    }
  } else if constexpr (kEnds == Ends::clamped && kRule == Rule::none) {
    sum = {hn::Min(hn::Max(sum.first, c.lowest), c.highest),
           hn::Min(hn::Max(sum.second, c.lowest), c.highest)};
  } else if constexpr (kEnds == Ends::clamped || kEnds == Ends::wrapped) {
    sum = {Wrapped(d, c, sum.first), Wrapped(d, c, sum.second)};
  }
}

}  // namespace numemu::unit::mac::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_MAC_ROUND_INL
