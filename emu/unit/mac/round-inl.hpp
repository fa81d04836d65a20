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

#include "emu/unit/mac/constants.hpp"
#include "emu/unit/mac/host-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::mac::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
