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

/// Where a pass reads and writes.
struct Pass {
  const float* from;
  std::int64_t from_stride;
  float* to;
  std::int64_t to_stride;
  std::int64_t rows, columns;
  const float* factors;
};

// Rows r and r + half become their sum and their difference.
template <bool kFirst, bool kLast>
void one_level(const Pass& p, std::int64_t half) {
  for (std::int64_t r = 0; r < p.rows; r += r % (2 * half) == half - 1 ? half + 1 : 1) {
    const float* const low = p.from + r * p.from_stride;
    const float* const high = low + half * p.from_stride;
    float* const sum = p.to + r * p.to_stride;
    float* const difference = sum + half * p.to_stride;
    for (std::int64_t c = 0; c < p.columns; c += lanes()) {
      FloatVector a = hn::LoadU(kFloats, low + c), b = hn::LoadU(kFloats, high + c);
      if (kFirst) {
        a = hn::Mul(a, set(p.factors[r]));
        b = hn::Mul(b, set(p.factors[r + half]));
      }
      put<kLast>(hn::Add(a, b), sum + c);
      put<kLast>(hn::Sub(a, b), difference + c);
    }
  }
}

// The levels `half` and 2 half.
template <bool kFirst, bool kLast>
void two_levels(const Pass& p, std::int64_t half) {
  for (std::int64_t r = 0; r < p.rows; r += r % (4 * half) == half - 1 ? 3 * half + 1 : 1) {
    const float* const from = p.from + r * p.from_stride;
    float* const to = p.to + r * p.to_stride;
    const std::int64_t in = half * p.from_stride, out = half * p.to_stride;
    for (std::int64_t c = 0; c < p.columns; c += lanes()) {
      const auto load = [&](std::int64_t k) HWY_ATTR {
        const FloatVector v = hn::LoadU(kFloats, from + k * in + c);
        return kFirst ? hn::Mul(v, set(p.factors[r + k * half])) : v;
      };
      const FloatVector v0 = load(0), v1 = load(1), v2 = load(2), v3 = load(3);
      const FloatVector s01 = hn::Add(v0, v1), d01 = hn::Sub(v0, v1);
      const FloatVector s23 = hn::Add(v2, v3), d23 = hn::Sub(v2, v3);
      put<kLast>(hn::Add(s01, s23), to + c);
      put<kLast>(hn::Add(d01, d23), to + out + c);
      put<kLast>(hn::Sub(s01, s23), to + 2 * out + c);
      put<kLast>(hn::Sub(d01, d23), to + 3 * out + c);
    }
  }
}

void transform(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               const float* factors, float* to, std::int64_t to_stride, float* buffer) {
  const Pass whole{from, from_stride, to, to_stride, rows, columns, factors};
  if (rows == 2) return one_level<true, true>(whole, 1);
  if (rows == 4) return two_levels<true, true>(whole, 1);
  two_levels<true, false>({from, from_stride, buffer, columns, rows, columns, factors}, 1);
  std::int64_t half = 4;
  for (; 4 * half < rows; half *= 4)
    two_levels<false, false>({buffer, columns, buffer, columns, rows, columns, factors}, half);
  const Pass last{buffer, columns, to, to_stride, rows, columns, factors};
  if (2 * half == rows) {
    one_level<false, true>(last, half);
  } else {
    two_levels<false, true>(last, half);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {

HWY_EXPORT(transform);

void butterflies(const float* from, std::int64_t from_stride, std::int64_t rows,
                 std::int64_t columns, const float* factors, float* to, std::int64_t to_stride,
                 float* buffer) {
  HWY_DYNAMIC_DISPATCH(transform)
  (from, from_stride, rows, columns, factors, to, to_stride, buffer);
}

}  // namespace numemu::simd
#endif
