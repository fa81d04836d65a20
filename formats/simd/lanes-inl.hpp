// Vector types and the few operations for which one instruction set has a better way.
#if defined(NUMEMU_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_LANES_INL
#undef NUMEMU_LANES_INL
#else
#define NUMEMU_LANES_INL
#endif
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using FloatVector = hn::Vec<Floats>;
using WordVector = hn::Vec<Words>;
using FloatMask = hn::Mask<Floats>;
constexpr Floats kFloats;
constexpr Words kWords;

HWY_INLINE WordVector bits_of(FloatVector x) { return hn::BitCast(kWords, x); }
HWY_INLINE FloatVector float_of(WordVector x) { return hn::BitCast(kFloats, x); }
HWY_INLINE FloatVector set(float x) { return hn::Set(kFloats, x); }
HWY_INLINE WordVector set(std::uint32_t x) { return hn::Set(kWords, x); }
HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(kFloats)); }

#undef NUMEMU_AVX512
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
#define NUMEMU_AVX512 1
#else
#define NUMEMU_AVX512 0
#endif

/// Bits of x where mask is set, bits of y elsewhere.
HWY_INLINE FloatVector mix(WordVector mask, FloatVector x, FloatVector y) {
#if NUMEMU_AVX512
  return float_of(
      WordVector{_mm512_ternarylogic_epi32(mask.raw, bits_of(x).raw, bits_of(y).raw, 0xca)});
#else
  return float_of(hn::Or(hn::And(mask, bits_of(x)), hn::AndNot(mask, bits_of(y))));
#endif
}

HWY_INLINE FloatMask is_number(FloatVector x) {
#if NUMEMU_AVX512
  return FloatMask{_mm512_cmp_ps_mask(x.raw, x.raw, _CMP_ORD_Q)};
#else
  return hn::Eq(x, x);
#endif
}

/// x != y, false where one is NaN.
HWY_INLINE FloatMask differ(FloatVector x, FloatVector y) {
#if NUMEMU_AVX512
  return FloatMask{_mm512_cmp_ps_mask(x.raw, y.raw, _CMP_NEQ_OQ)};
#elif HWY_TARGET == HWY_AVX2
  return FloatMask{_mm256_cmp_ps(x.raw, y.raw, _CMP_NEQ_OQ)};
#else
  return hn::Or(hn::Lt(x, y), hn::Lt(y, x));
#endif
}

/// x cut to [-limit, limit] with its sign; `otherwise` where x is not a number.
HWY_INLINE FloatVector clamp(FloatVector x, FloatVector limit, FloatMask number,
                             FloatVector otherwise) {
#if NUMEMU_AVX512
  return FloatVector{_mm512_mask_range_ps(otherwise.raw, number.raw, x.raw, limit.raw, 0x2)};
#else
  const FloatVector sign = hn::And(x, float_of(set(0x80000000U)));
  return hn::IfThenElse(number, hn::Or(hn::Min(hn::Abs(x), limit), sign), otherwise);
#endif
}

/// |x| cut to [0, limit]; `otherwise` where x is not a number.
HWY_INLINE FloatVector clamp_magnitude(FloatVector x, FloatVector limit, FloatMask number,
                                       FloatVector otherwise) {
#if NUMEMU_AVX512
  return FloatVector{_mm512_mask_range_ps(otherwise.raw, number.raw, x.raw, limit.raw, 0xa)};
#else
  return hn::IfThenElse(number, hn::Min(hn::Abs(x), limit), otherwise);
#endif
}

/// The power of two at or below |x|, at least `first`, with the sign of x. x is not NaN or keeps
/// its payload apart from this.
HWY_INLINE FloatVector signed_binade(FloatVector x, FloatVector first) {
#if NUMEMU_AVX512
  const FloatVector power = hn::And(x, float_of(set(0xff800000U)));
  return FloatVector{_mm512_range_ps(power.raw, first.raw, 0x3)};
#else
  const FloatVector power = hn::And(x, float_of(set(0x7f800000U)));
  return hn::Or(hn::Max(power, first), hn::And(x, float_of(set(0x80000000U))));
#endif
}

/// signed_binade() for x >= 0.
HWY_INLINE FloatVector binade(FloatVector x, FloatVector first) {
  return hn::Max(hn::And(x, float_of(set(0x7f800000U))), first);
}

/// The integer nearest to x >= 0, ties to even, whatever the host's rounding direction is.
HWY_INLINE FloatVector nearest_integer(FloatVector x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SSSE3
  // Round() rests on the host's direction here. From 2^23 on every float is an integer.
  const hn::RebindToSigned<Floats> integers;
  const FloatMask has_fraction = hn::Lt(x, set(0x1p23F));
  const auto whole = hn::ConvertTo(integers, hn::IfThenElseZero(has_fraction, x));
  const FloatVector floor = hn::ConvertTo(kFloats, whole), rest = hn::Sub(x, floor);
  const auto one = hn::Set(integers, 1);
  const FloatMask odd = hn::RebindMask(kFloats, hn::Eq(hn::And(whole, one), one));
  const FloatMask tie = hn::And(hn::Eq(rest, set(0.5F)), odd);
  const FloatMask up = hn::Or(hn::Gt(rest, set(0.5F)), tie);
  return hn::IfThenElse(has_fraction, hn::Add(floor, hn::IfThenElseZero(up, set(1.0F))), x);
#else
  return hn::Round(x);
#endif
}

/// yes where the mask is set, no elsewhere, for words.
HWY_INLINE WordVector choose(FloatMask mask, WordVector yes, WordVector no) {
  return hn::IfThenElse(hn::RebindMask(kWords, mask), yes, no);
}

/// yes where `some`, and there `small` where `tiny`; `large` where `over`; 0 elsewhere.
HWY_INLINE WordVector flag_words(FloatMask some, FloatMask tiny, FloatMask over, std::uint32_t yes,
                                 std::uint32_t small, std::uint32_t large) {
#if NUMEMU_AVX512
  __m512i flags = _mm512_maskz_mov_epi32(some.raw, set(yes).raw);
  flags = _mm512_mask_mov_epi32(flags, some.raw & tiny.raw, set(small).raw);
  return WordVector{_mm512_mask_mov_epi32(flags, over.raw, set(large).raw)};
#else
  // Bits by and and or: blends take three times as long on some machines.
  const auto where = [](FloatMask mask, std::uint32_t bits) HWY_ATTR {
    return hn::IfThenElseZero(hn::RebindMask(kWords, mask), set(bits));
  };
  const FloatMask rest = hn::AndNot(over, some);
  return hn::Or(where(over, large), hn::Or(where(rest, yes), where(hn::And(rest, tiny), small)));
#endif
}

/// yes where y and x differ (NaN differs from nothing), and there `small` where magnitude < tiny;
/// `large` where magnitude >= over, which is not tiny; 0 elsewhere. small and large include yes.
HWY_INLINE WordVector flag_words(FloatVector y, FloatVector x, FloatVector magnitude,
                                 FloatVector tiny, FloatVector over, std::uint32_t yes,
                                 std::uint32_t small, std::uint32_t large) {
#if NUMEMU_AVX512
  const __mmask16 changed = _mm512_cmp_ps_mask(y.raw, x.raw, _CMP_NEQ_OQ);
  const __mmask16 is_tiny = _mm512_mask_cmp_ps_mask(changed, magnitude.raw, tiny.raw, _CMP_LT_OQ);
  const __mmask16 is_over = _mm512_cmp_ps_mask(magnitude.raw, over.raw, _CMP_GE_OQ);
  __m512i flags = _mm512_maskz_mov_epi32(changed, set(yes).raw);
  flags = _mm512_mask_mov_epi32(flags, is_tiny, set(small).raw);
  return WordVector{_mm512_mask_mov_epi32(flags, is_over, set(large).raw)};
#else
  const FloatMask changed = differ(y, x);
  // Bits by and and or: blends take three times as long on some machines.
  const auto where = [](FloatMask mask, std::uint32_t bits) HWY_ATTR {
    return hn::IfThenElseZero(hn::RebindMask(kWords, mask), set(bits));
  };
  const WordVector both =
      hn::Or(where(changed, yes), where(hn::And(changed, hn::Lt(magnitude, tiny)), small));
  return hn::Or(both, where(hn::Ge(magnitude, over), large));
#endif
}

/// The words with `bits` set too where x is a signalling NaN. Few vectors hold a NaN at all.
HWY_INLINE WordVector flag_signalling(WordVector words, FloatVector x, FloatMask number,
                                      std::uint32_t bits) {
  if (HWY_LIKELY(hn::AllTrue(kFloats, number))) return words;
  const hn::RebindToSigned<Floats> integers;
  const auto magnitude = hn::BitCast(integers, hn::Abs(x));
  const auto quiet = hn::Set(integers, 0x7fc00000);
  const FloatMask signals = hn::AndNot(number, hn::RebindMask(kFloats, hn::Lt(magnitude, quiet)));
  return choose(signals, hn::Or(words, set(bits)), words);
}

/// The low bytes of four vectors, in order.
HWY_INLINE void store_bytes(WordVector a, WordVector b, WordVector c, WordVector d,
                            std::uint8_t* to) {
#if NUMEMU_AVX512
  const __m512i low = _mm512_packus_epi32(a.raw, b.raw), high = _mm512_packus_epi32(c.raw, d.raw);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high)));
#elif HWY_TARGET == HWY_AVX2
  const __m256i low = _mm256_packus_epi32(a.raw, b.raw), high = _mm256_packus_epi32(c.raw, d.raw);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
#else
  const hn::Rebind<std::uint8_t, Words> bytes;
  const std::size_t n = hn::Lanes(kWords);
  hn::StoreU(hn::TruncateTo(bytes, a), bytes, to);
  hn::StoreU(hn::TruncateTo(bytes, b), bytes, to + n);
  hn::StoreU(hn::TruncateTo(bytes, c), bytes, to + 2 * n);
  hn::StoreU(hn::TruncateTo(bytes, d), bytes, to + 3 * n);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();
#endif
