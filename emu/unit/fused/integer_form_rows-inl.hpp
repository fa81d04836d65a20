// The register block of the 32-bit integer form: rows x two vectors; once per Highway target.
#if defined(NUMEMU_INTEGER_FORM_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_INTEGER_FORM_ROWS_INL
#undef NUMEMU_INTEGER_FORM_ROWS_INL
#else
#define NUMEMU_INTEGER_FORM_ROWS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "emu/unit/fused/prepare_loop-inl.hpp"

#if HWY_TARGET != HWY_SCALAR  // which has no halves of vectors
HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using IntegerFormF = hn::ScalableTag<float>;
using IntegerFormI = hn::ScalableTag<std::int32_t>;

/// x toward zero, |x| < 2^31. Highway's ConvertTo mends results beyond, which costs twice as much
/// as the conversion itself.
HWY_INLINE hn::Vec<IntegerFormI> Truncate(hn::Vec<IntegerFormF> x) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  return hn::Vec<IntegerFormI>{_mm512_cvttps_epi32(x.raw)};
#elif HWY_TARGET == HWY_AVX2
  return hn::Vec<IntegerFormI>{_mm256_cvttps_epi32(x.raw)};
#else
  return hn::ConvertTo(IntegerFormI(), x);
#endif
}

/// One vector of outputs in one step: the sum in units of 2^(E - F), and 2^(F - E).
struct IntegerSum {
  using F = IntegerFormF;
  using I = IntegerFormI;
  hn::Vec<I> sum;
  hn::Vec<F> scale;

  /// C is the first addend.
  HWY_INLINE void Start(hn::Vec<I> of_products, const FusedSteps& steps, const float* c) {
    const F f;
    const I i;
    const auto value = hn::Load(f, c);
    const auto largest = IncludeC(f, of_products, value, steps);
    const auto field = hn::Sub(hn::Set(i, 2 * 127 + steps.rule.fraction_bits), largest);
    scale = hn::BitCast(f, hn::ShiftLeft<23>(field));
    sum = Truncate(hn::Mul(value, scale));
  }
  /// The product is exact; so is its multiple, or it is below one unit.
  HWY_INLINE void Add(hn::Vec<F> a, hn::Vec<F> b) {
    sum = hn::Add(sum, Truncate(hn::Mul(hn::Mul(a, b), scale)));
  }
  /// The reciprocal of the scale.
  HWY_INLINE hn::Vec<F> Unit() const {
    const I i;
    return hn::BitCast(F(), hn::Sub(hn::Set(i, 254 << 23), hn::BitCast(i, scale)));
  }
  HWY_INLINE void Finish(const FusedSteps& steps, float* c) const {
    const F f;
    if (steps.rule.half) {
      // Infinity stays what it is.
      const auto old = hn::Load(f, c);
      hn::Store(hn::IfThenElse(hn::IsInf(old), old, Half()), f, c);
      return;
    }
    // Toward zero; the product is exact, a multiple of 2^-126.
    const auto x = hn::Mul(hn::ConvertTo(f, sum), Unit());
    hn::Store(KeepBits(f, x, steps.rule.kept_bits), f, c);
  }
  /// The sum rounded to float16, to nearest even: its last bits, as many as lie below the ulp of a
  /// float16 of its size, are rounded off as an integer.
  HWY_INLINE hn::Vec<F> Half() const {
    const F f;
    const I i;
    const hn::RebindToUnsigned<I> u;
    const auto unit = Unit();
    const auto one = hn::Set(u, 1u);
    const auto magnitude = hn::BitCast(u, hn::Abs(sum));
    // Converted toward zero, so that the exponent is that of the leading bit.
    const auto exponent_of = [&](auto x) HWY_ATTR {
      return hn::Sub(hn::ShiftRight<23>(hn::BitCast(i, x)), hn::Set(i, 127));
    };
    const auto leading = exponent_of(hn::ConvertTo(f, hn::BitCast(i, magnitude)));
    const auto smallest = hn::Sub(hn::Set(i, -14), exponent_of(unit));
    const auto shift =
        hn::BitCast(u, hn::Max(hn::Sub(hn::Max(leading, smallest), hn::Set(i, 10)), hn::Zero(i)));
    const auto ulp = hn::Shl(one, shift);
    const auto below_half = hn::ShiftRight<1>(hn::Sub(ulp, one));
    const auto odd = hn::And(hn::Shr(magnitude, shift), hn::Min(shift, one));
    const auto rounded =
        hn::AndNot(hn::Sub(ulp, one), hn::Add(hn::Add(magnitude, below_half), odd));
    auto x = hn::Mul(hn::ConvertTo(f, hn::BitCast(i, rounded)), unit);
    x = hn::IfThenElse(hn::Ge(x, hn::Set(f, 65536.0f)), hn::Inf(f), x);
    const auto sign = hn::And(hn::BitCast(u, sum), hn::Set(u, 0x80000000u));
    return hn::Or(x, hn::BitCast(f, sign));
  }
};

/// One row of a panel of lanes, and the rows after it; recursion keeps every vector in a register.
template <int kRows>
struct IntegerRows {
  using F = IntegerFormF;
  IntegerSum first, second;
  IntegerRows<kRows - 1> rest;

  template <class Largest>
  HWY_INLINE void Start(const Largest& largest, const FusedSteps& steps, const float* sums) {
    const std::size_t lanes = hn::Lanes(F());
    first.Start(largest.Low(), steps, sums);
    second.Start(largest.High(), steps, sums + lanes);
    rest.Start(largest.rest, steps, sums + 2 * lanes);
  }
  HWY_INLINE void Add(const float* row, hn::Vec<F> b_first, hn::Vec<F> b_second) {
    const auto a = hn::Set(F(), *row);
    first.Add(a, b_first);
    second.Add(a, b_second);
    rest.Add(row + 1, b_first, b_second);
  }
  HWY_INLINE void Finish(const FusedSteps& steps, float* sums) const {
    const std::size_t lanes = hn::Lanes(F());
    first.Finish(steps, sums);
    second.Finish(steps, sums + lanes);
    rest.Finish(steps, sums + 2 * lanes);
  }
};
template <>
struct IntegerRows<0> {
  template <class Largest>
  HWY_INLINE void Start(const Largest&, const FusedSteps&, const float*) {}
  HWY_INLINE void Add(const float*, hn::Vec<IntegerFormF>, hn::Vec<IntegerFormF>) {}
  HWY_INLINE void Finish(const FusedSteps&, float*) const {}
};

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR
#endif  // NUMEMU_INTEGER_FORM_ROWS_INL
