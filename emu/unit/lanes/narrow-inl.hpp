// Doubles rounded to float32 as IEEE 754 does; and loops unrolled by constants; per Highway target.
#if defined(NUMEMU_NARROW_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_NARROW_INL
#undef NUMEMU_NARROW_INL
#else
#define NUMEMU_NARROW_INL
#endif

#include <hwy/highway.h>

#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// f(0), f(1)... f(kCount - 1) with constants, so that arrays indexed by them stay in registers. f
/// must be always_inline for that.
template <int kCount, class F>
HWY_INLINE void ForConstants(const F& f) {
  if constexpr (kCount > 0) {
    ForConstants<kCount - 1>(f);
    f(std::integral_constant<int, kCount - 1>());
  }
}

/// Overflow gives infinity: Highway's targets without vectors would give the largest number.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<float, D>> ToFloat32(D d, hn::Vec<D> x) {
  const hn::Rebind<float, D> d_float;
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  HWY_ALIGN double wide[hn::MaxLanes(D())];
  HWY_ALIGN float narrow[hn::MaxLanes(D())];
  hn::Store(x, d, wide);
  for (std::size_t i = 0; i < hn::MaxLanes(D()); ++i) narrow[i] = static_cast<float>(wide[i]);
  return hn::Load(d_float, narrow);
#else
  (void)d;
  return hn::DemoteTo(d_float, x);
#endif
}

/// x + y rounded to odd: where the sum is inexact, its neighbour with an odd last bit. Rounding
/// that to 24 bits is rounding the exact sum (Boldo and Melquiond, IEEE Trans. Comput. 57(4), 2008:
/// 53 >= 24 + 2). The error of the sum is exact by Knuth's TwoSum; an infinite y gives it as NaN,
/// which is not taken for an error.
template <class D>
HWY_INLINE hn::Vec<D> AddToOdd(D d, hn::Vec<D> x, hn::Vec<D> y) {
  const hn::RebindToSigned<D> bits;
  const auto sum = hn::Add(x, y);
  const auto y_part = hn::Sub(sum, x);
  const auto error = hn::Add(hn::Sub(x, hn::Sub(sum, y_part)), hn::Sub(y, y_part));
  const auto one = hn::Set(bits, 1), code = hn::BitCast(bits, sum);
  const auto inexact = hn::Or(hn::Lt(error, hn::Zero(d)), hn::Gt(error, hn::Zero(d)));
  const auto even = hn::RebindMask(d, hn::Eq(hn::And(code, one), hn::Zero(bits)));
  // One unit away from zero where error and sum have the same sign, else toward it.
  const auto away = hn::BroadcastSignBit(hn::Xor(hn::BitCast(bits, error), code));
  const auto neighbour = hn::Add(code, hn::Or(away, one));
  return hn::IfThenElse(hn::And(inexact, even), hn::BitCast(d, neighbour), sum);
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_NARROW_INL
