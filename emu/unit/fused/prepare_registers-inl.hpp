// Registers of fused units in vectors: exponents of C, rounding to float16, codes; once per Highway
// target.
#if defined(NUMEMU_FUSED_REGISTERS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_FUSED_REGISTERS_INL
#undef NUMEMU_FUSED_REGISTERS_INL
#else
#define NUMEMU_FUSED_REGISTERS_INL
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "emu/unit/fused/prepare_tile.hpp"
#include "formats/float_guard.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The larger of `largest` and the exponent with which registers take part in the alignment, both
/// biased by 127. `largest` is at least steps.least.
template <class D, class DI = hn::RebindToSigned<D>>
HWY_INLINE hn::Vec<DI> IncludeC(D d, hn::Vec<DI> largest, hn::Vec<D> c, const FusedSteps& steps) {
  constexpr int kBias = 127, kSmallest = -126;
  const DI di;
  (void)d;
  const auto magnitude = hn::BitCast(di, hn::Abs(c));
  const auto field = hn::ShiftRight<23>(magnitude);
  // Zero and subnormal numbers have field 0, less than `largest`.
  if (steps.rule.smallest == kSmallest && steps.least >= kSmallest) return hn::Max(largest, field);
  const auto exponent =
      hn::IfThenElse(hn::Eq(magnitude, hn::Zero(di)), hn::Set(di, steps.exponent_of_zero_c + kBias),
                     hn::Max(field, hn::Set(di, steps.rule.smallest + kBias)));
  return hn::Max(largest, exponent);
}

/// Cuts a float32 register to its fraction bits, toward zero.
template <class D>
HWY_INLINE hn::Vec<D> KeepBits(D d, hn::Vec<D> x, int kept_bits) {
  const hn::RebindToUnsigned<D> words;
  const auto mask = hn::Set(words, ~std::uint32_t{0} << (23 - kept_bits));
  return hn::BitCast(d, hn::And(hn::BitCast(words, x), mask));
}

/// x rounded to float16, to nearest even, as a T (float or double); beyond 65504 infinity. Needs x
/// to be a multiple of 2^-38 for float, of 2^-66 for double, whatever the host rounds to: below
/// 2^-14, adding 2^-14 moves the last bit of a float16 to where it is in [2^-14, 2^-13), exactly.
template <class D>
HWY_INLINE hn::Vec<D> RoundToHalf(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  constexpr bool kSingle = std::is_same_v<T, float>;
  constexpr int kShift = kSingle ? 13 : 42;
  const hn::RebindToUnsigned<D> words;
  using Word = hn::TFromD<decltype(words)>;
  const auto smallest = hn::Set(d, static_cast<T>(0x1p-14));
  const auto magnitude = hn::Abs(x);
  const auto tiny = hn::Lt(magnitude, smallest);
  const auto lift = hn::IfThenElseZero(tiny, smallest);
  const auto bits = hn::BitCast(words, hn::Add(magnitude, lift));
  const auto odd = hn::And(hn::ShiftRight<kShift>(bits), hn::Set(words, Word{1}));
  const auto below_half = hn::Set(words, (Word{1} << (kShift - 1)) - 1);
  const auto rounded =
      hn::And(hn::Add(hn::Add(bits, below_half), odd), hn::Set(words, ~((Word{1} << kShift) - 1)));
  auto value = hn::Sub(hn::BitCast(d, rounded), lift);
  value = hn::IfThenElse(hn::Ge(value, hn::Set(d, static_cast<T>(65536))), hn::Inf(d), value);
  return hn::CopySignToAbs(hn::IfThenElse(hn::IsNaN(x), x, value), x);
}

/// Doubles rounded to the register as by RoundToHalf() with the numbers of the rule. The host must
/// round toward zero: bits that the lift cuts off are remembered in the last one kept, 29 places
/// below the register's or more.
template <class D>
HWY_INLINE hn::Vec<D> RoundToRegister(D d, hn::Vec<D> x, const FusedRule& rule) {
  using Word = std::uint64_t;
  const hn::RebindToUnsigned<D> words;
  const auto power = [](int exponent) {
    return std::bit_cast<double>(static_cast<Word>(1023 + exponent) << 52);
  };
  const int shift = 52 - rule.kept_bits;
  const Word last = Word{1} << shift;
  const auto smallest = hn::Set(d, power(rule.smallest));
  const auto magnitude = hn::Abs(x);
  const auto lift = hn::IfThenElseZero(hn::Lt(magnitude, smallest), smallest);
  const auto lifted = hn::Add(magnitude, lift);
  const auto cut = hn::Ne(hn::Sub(lifted, lift), magnitude);
  auto bits = hn::Or(hn::BitCast(words, lifted),
                     hn::IfThenElseZero(hn::RebindMask(words, cut), hn::Set(words, Word{1})));
  if (rule.nearest) {
    const auto odd = hn::And(hn::ShiftRightSame(bits, shift), hn::Set(words, Word{1}));
    bits = hn::Add(hn::Add(bits, hn::Set(words, last / 2 - 1)), odd);
  }
  bits = hn::And(bits, hn::Set(words, ~(last - 1)));
  auto value = hn::Sub(hn::BitCast(d, bits), lift);
  const double largest = power(rule.top) - power(rule.top - 1 - rule.kept_bits);
  const auto beyond = hn::Ge(value, hn::Set(d, power(rule.top)));
  value = hn::IfThenElse(beyond, rule.to_infinity ? hn::Inf(d) : hn::Set(d, largest), value);
  return hn::CopySignToAbs(hn::IfThenElse(hn::IsNaN(x), x, value), x);
}

/// Codes of floats that are float16 numbers, infinities or NaN.
inline void HalfCodes(const float* values, std::int64_t count, std::uint16_t nan,
                      std::uint16_t* codes) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint16_t, decltype(d)> d_short;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += step) {
    const auto x = hn::Load(d, values + i);
    const auto magnitude = hn::Abs(x);
    const auto sign =
        hn::ShiftRight<16>(hn::And(hn::BitCast(hn::RebindToUnsigned<decltype(d)>(), x),
                                   hn::Set(hn::RebindToUnsigned<decltype(d)>(), 0x80000000u)));
    const auto normal =
        hn::Sub(hn::ShiftRight<13>(hn::BitCast(di, magnitude)), hn::Set(di, (127 - 15) << 10));
    const auto subnormal = hn::ConvertTo(di, hn::Mul(magnitude, hn::Set(d, 0x1p24f)));
    const auto finite = hn::IfThenElse(hn::RebindMask(di, hn::Lt(magnitude, hn::Set(d, 0x1p-14f))),
                                       subnormal, normal);
    // Infinity is beyond the largest code.
    auto code = hn::Or(hn::Min(finite, hn::Set(di, 0x7c00)), hn::BitCast(di, sign));
    code = hn::IfThenElse(hn::RebindMask(di, hn::IsNaN(x)), hn::Set(di, int{nan}), code);
    hn::Store(hn::DemoteTo(d_short, code), d_short, codes + i);
  }
}

/// Replaces NaN by the unit's.
inline void PutNan(float* values, std::int64_t count, std::uint32_t nan) {
  const hn::ScalableTag<float> d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  const auto canonical = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<decltype(d)>(), nan));
  for (std::int64_t i = 0; i < count; i += step) {
    const auto x = hn::Load(d, values + i);
    hn::Store(hn::IfThenElse(hn::IsNaN(x), canonical, x), d, values + i);
  }
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_FUSED_REGISTERS_INL
