#include "policies/calibrate/add_scaled_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "policies/calibrate/add_scaled_rows.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Four vectors of sums stay in registers while the rows pass.
std::int64_t add_scaled_panels(const float* x, std::int64_t width, const std::int32_t* places,
                               const float* factors, std::int64_t count, std::int64_t n,
                               double* sums) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const auto step = static_cast<std::int64_t>(hn::Lanes(wide));
  std::int64_t j = 0;
  for (; j + 4 * step <= n; j += 4 * step) {
    auto s0 = hn::LoadU(wide, sums + j), s1 = hn::LoadU(wide, sums + j + step),
         s2 = hn::LoadU(wide, sums + j + 2 * step), s3 = hn::LoadU(wide, sums + j + 3 * step);
    for (std::int64_t r = 0; r < count; ++r) {
      const float* const row = x + places[r] * width + j;
      const auto f = hn::Set(wide, double{factors[r]});
      s0 = hn::MulAdd(f, hn::PromoteTo(wide, hn::LoadU(narrow, row)), s0);
      s1 = hn::MulAdd(f, hn::PromoteTo(wide, hn::LoadU(narrow, row + step)), s1);
      s2 = hn::MulAdd(f, hn::PromoteTo(wide, hn::LoadU(narrow, row + 2 * step)), s2);
      s3 = hn::MulAdd(f, hn::PromoteTo(wide, hn::LoadU(narrow, row + 3 * step)), s3);
    }
    hn::StoreU(s0, wide, sums + j);
    hn::StoreU(s1, wide, sums + j + step);
    hn::StoreU(s2, wide, sums + j + 2 * step);
    hn::StoreU(s3, wide, sums + j + 3 * step);
  }
  for (; j + step <= n; j += step) {
    auto s = hn::LoadU(wide, sums + j);
    for (std::int64_t r = 0; r < count; ++r) {
      s = hn::MulAdd(hn::Set(wide, double{factors[r]}),
                     hn::PromoteTo(wide, hn::LoadU(narrow, x + places[r] * width + j)), s);
    }
    hn::StoreU(s, wide, sums + j);
  }
  return j;
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {
namespace {

HWY_EXPORT(add_scaled_panels);

std::int64_t whole_panels(const float* x, std::int64_t width, const std::int32_t* places,
                          const float* factors, std::int64_t count, std::int64_t n, double* sums) {
  return HWY_DYNAMIC_DISPATCH(add_scaled_panels)(x, width, places, factors, count, n, sums);
}

}  // namespace
}  // namespace numemu::simd

namespace numemu::policies {

void add_scaled_rows(const float* x, std::int64_t width, const std::int32_t* places,
                     const float* factors, std::int64_t count, std::int64_t n, double* sums) {
  for (std::int64_t j = simd::whole_panels(x, width, places, factors, count, n, sums); j < n; ++j) {
    for (std::int64_t r = 0; r < count; ++r)
      sums[j] += double{factors[r]} * double{x[places[r] * width + j]};
  }
}

}  // namespace numemu::policies
#endif
