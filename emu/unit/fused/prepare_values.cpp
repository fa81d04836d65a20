// Loops over whole operands before a fused product; per Highway target.
#include "emu/unit/fused/prepare_values.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/fused/prepare_values.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/highway.h>

#include <algorithm>
#include <bit>

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void SurveyValues(const float* values, std::int64_t n, Survey& found) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto* words = reinterpret_cast<const std::uint32_t*>(values);
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  const auto magnitude_bits = hn::Set(d, 0x7fffffffu), one = hn::Set(d, 1u);
  auto least = hn::Set(d, 0xffffffffu), most = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    const auto magnitude = hn::And(hn::LoadU(d, words + i), magnitude_bits);
    least = hn::Min(least, hn::Sub(magnitude, one));  // a zero wraps to the largest
    most = hn::Max(most, magnitude);
  }
  std::uint32_t below = hn::GetLane(hn::MinOfLanes(d, least));
  found.most = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < n; ++i) {
    const std::uint32_t magnitude = words[i] & 0x7fffffffu;
    below = std::min(below, magnitude - 1);
    found.most = std::max(found.most, magnitude);
  }
  found.least = below == 0xffffffffu ? below : below + 1;
}

/// Magnitudes of normal numbers move to float32's place and bias; those of subnormal numbers become
/// fractions of 2^-14, which is then taken off exactly.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToFloat<D>> FromFloat16(D d, hn::Vec<D> code) {
  const hn::RebindToFloat<D> d_float;
  constexpr std::uint32_t kRebias = (127 - 15) << 23, kSmallestNormal = (127 - 14) << 23;
  const auto sign = hn::ShiftLeft<16>(hn::And(code, hn::Set(d, 0x8000u)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(code, hn::Set(d, 0x7fffu)));
  const auto normal = hn::Add(magnitude, hn::Set(d, kRebias));
  const auto special = hn::Add(normal, hn::Set(d, kRebias));
  const auto smallest = hn::Set(d, kSmallestNormal);
  const auto subnormal = hn::BitCast(d, hn::Sub(hn::BitCast(d_float, hn::Add(magnitude, smallest)),
                                                hn::BitCast(d_float, smallest)));
  auto value = hn::IfThenElse(hn::Lt(normal, smallest), subnormal, normal);
  value = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, (0x1fu << 23) - 1)), special, value);
  return hn::BitCast(d_float, hn::Or(value, sign));
}

template <class D>
HWY_INLINE hn::Vec<hn::RebindToFloat<D>> FromBfloat16(D, hn::Vec<D> code) {
  return hn::BitCast(hn::RebindToFloat<D>(), hn::ShiftLeft<16>(code));
}

template <class Convert>
HWY_INLINE void ConvertAll(const std::uint16_t* codes, std::int64_t n, float* values,
                           const Convert& convert) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::CappedTag<std::uint32_t, 1> single;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  const auto at = [&](auto tag, std::int64_t i) HWY_ATTR {
    const hn::Rebind<std::uint16_t, decltype(tag)> narrow;
    hn::StoreU(convert(tag, hn::PromoteTo(tag, hn::LoadU(narrow, codes + i))),
               hn::RebindToFloat<decltype(tag)>(), values + i);
  };
  std::int64_t i = 0;
  for (; i + step <= n; i += step) at(d, i);
  for (; i < n; ++i) at(single, i);
}

void ConvertFloat16(const std::uint16_t* codes, std::int64_t n, float* values) {
  ConvertAll(codes, n, values, [](auto d, auto code) HWY_ATTR { return FromFloat16(d, code); });
}
void ConvertBfloat16(const std::uint16_t* codes, std::int64_t n, float* values) {
  ConvertAll(codes, n, values, [](auto d, auto code) HWY_ATTR { return FromBfloat16(d, code); });
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(SurveyValues);
HWY_EXPORT(ConvertFloat16);
HWY_EXPORT(ConvertBfloat16);

Survey survey(const float* values, std::int64_t n) {
  Survey found;
  HWY_DYNAMIC_DISPATCH(SurveyValues)(values, n, found);
  return found;
}
void float16_to_float32(const std::uint16_t* codes, std::int64_t n, float* values) {
  HWY_DYNAMIC_DISPATCH(ConvertFloat16)(codes, n, values);
}
void bfloat16_to_float32(const std::uint16_t* codes, std::int64_t n, float* values) {
  HWY_DYNAMIC_DISPATCH(ConvertBfloat16)(codes, n, values);
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
