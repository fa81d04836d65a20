// Host operations for rounding besides plain arithmetic: sums to odd and toward zero, binades,
// last bits; once per Highway target. AVX-512 rounds as the instruction says, others repair.
#if defined(NUMEMU_MAC_HOST_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_MAC_HOST_INL
#undef NUMEMU_MAC_HOST_INL
#else
#define NUMEMU_MAC_HOST_INL
#endif

#include <hwy/highway.h>

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

}  // namespace numemu::unit::mac::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_MAC_HOST_INL
