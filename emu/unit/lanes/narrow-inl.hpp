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

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_NARROW_INL
