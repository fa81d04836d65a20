// Two levels of sums and differences at a time, in registers; dispatched at run time.
//
// A NaN makes every later sum a NaN, whatever its payload, so the last level alone replaces it.
#include "formats/simd/butterflies.hpp"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/butterflies.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

template <bool kLast>
HWY_INLINE void put(FloatVector v, float* to) {
  if (kLast) v = hn::IfThenElse(hn::Eq(v, v), v, float_of(set(0x7fc00000U)));
  hn::StoreU(v, kFloats, to);
}

// Rows r and r + half become their sum and their difference.
template <bool kFirst, bool kLast>
void one_level(float* x, std::int64_t rows, std::int64_t columns, std::int64_t half,
               const float* factors) {
  for (std::int64_t r = 0; r < rows; r += r % (2 * half) == half - 1 ? half + 1 : 1) {
    float* const low = x + r * columns;
    float* const high = low + half * columns;
    for (std::int64_t c = 0; c < columns; c += lanes()) {
      FloatVector a = hn::LoadU(kFloats, low + c), b = hn::LoadU(kFloats, high + c);
      if (kFirst) {
        a = hn::Mul(a, set(factors[r]));
        b = hn::Mul(b, set(factors[r + half]));
      }
      put<kLast>(hn::Add(a, b), low + c);
      put<kLast>(hn::Sub(a, b), high + c);
    }
  }
}

// The levels `half` and 2 half.
template <bool kFirst, bool kLast>
void two_levels(float* x, std::int64_t rows, std::int64_t columns, std::int64_t half,
                const float* factors) {
  for (std::int64_t r = 0; r < rows; r += r % (4 * half) == half - 1 ? 3 * half + 1 : 1) {
    float* const at = x + r * columns;
    const std::int64_t step = half * columns;
    for (std::int64_t c = 0; c < columns; c += lanes()) {
      const auto load = [&](std::int64_t k) HWY_ATTR {
        const FloatVector v = hn::LoadU(kFloats, at + k * step + c);
        return kFirst ? hn::Mul(v, set(factors[r + k * half])) : v;
      };
      const FloatVector v0 = load(0), v1 = load(1), v2 = load(2), v3 = load(3);
      const FloatVector s01 = hn::Add(v0, v1), d01 = hn::Sub(v0, v1);
      const FloatVector s23 = hn::Add(v2, v3), d23 = hn::Sub(v2, v3);
      put<kLast>(hn::Add(s01, s23), at + c);
      put<kLast>(hn::Add(d01, d23), at + step + c);
      put<kLast>(hn::Sub(s01, s23), at + 2 * step + c);
      put<kLast>(hn::Sub(d01, d23), at + 3 * step + c);
    }
  }
}

void transform(float* x, std::int64_t rows, std::int64_t columns, const float* factors) {
  std::int64_t half = 1;
  if (rows == 2) return one_level<true, true>(x, rows, columns, half, factors);
  if (rows == 4) return two_levels<true, true>(x, rows, columns, half, factors);
  two_levels<true, false>(x, rows, columns, half, factors);
  for (half = 4; 4 * half < rows; half *= 4)
    two_levels<false, false>(x, rows, columns, half, factors);
  if (2 * half == rows) {
    one_level<false, true>(x, rows, columns, half, factors);
  } else {
    two_levels<false, true>(x, rows, columns, half, factors);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {

HWY_EXPORT(transform);

void butterflies(float* x, std::int64_t rows, std::int64_t columns, const float* factors) {
  HWY_DYNAMIC_DISPATCH(transform)(x, rows, columns, factors);
}

}  // namespace numemu::simd
#endif
