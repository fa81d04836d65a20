// C and D of the float and the half form: gathered, widened and back; once per Highway target.
#if defined(NUMEMU_FLOAT_FORM_REGISTERS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_FLOAT_FORM_REGISTERS_INL
#undef NUMEMU_FLOAT_FORM_REGISTERS_INL
#else
#define NUMEMU_FLOAT_FORM_REGISTERS_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "emu/unit/chain/chain_pack-inl.hpp"
#include "emu/unit/fused/float_form_kernel-inl.hpp"

// Outside the namespace: clang warns where Highway's target applies to nothing.
#if HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// From and to `width` floats; float16 as their codes.
HWY_INLINE void Widen(const std::uint16_t* from, float* to, std::int64_t width) {
  const FloatTag d;
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  for (std::int64_t j = 0; j < width; j += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto* halves = reinterpret_cast<const hwy::float16_t*>(from + j);
    hn::Store(hn::PromoteTo(d, hn::LoadU(d16, halves)), d, to + j);
  }
}
HWY_INLINE void Narrow(const float* from, std::uint16_t* to, std::int64_t width) {
  const FloatTag d;
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  for (std::int64_t j = 0; j < width; j += static_cast<std::int64_t>(hn::Lanes(d))) {
    auto* halves = reinterpret_cast<hwy::float16_t*>(to + j);
    hn::StoreU(hn::DemoteTo(d16, hn::Load(d, from + j)), d16, halves);
  }
}
HWY_INLINE void Widen(const float* from, float* to, std::int64_t width) {
  CopyRun(from, to, width);
}
HWY_INLINE void Narrow(const float* from, float* to, std::int64_t width) {
  CopyRun(from, to, width);
}

template <class T>
HWY_INLINE void CopyLine(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                         std::int64_t count) {
  if (from_stride == 1 && to_stride == 1) {
    std::copy_n(from, count, to);
  } else {
    for (std::int64_t j = 0; j < count; ++j) to[j * to_stride] = from[j * from_stride];
  }
}

/// NaN and infinity become +0.
HWY_INLINE void ZeroSpecials(float* values, std::int64_t count) {
  const FloatTag d;
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const Floats x = hn::Load(d, values + i);
    const Floats finite = hn::Sub(x, x);  // else NaN
    hn::Store(hn::IfThenElseZero(hn::Eq(finite, finite), x), d, values + i);
  }
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_NATIVE_FMA
#endif  // NUMEMU_FLOAT_FORM_REGISTERS_INL
