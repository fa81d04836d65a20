// Codes above a minimum in vectors of float64, dispatched at run time.
//
// A difference, a reciprocal and a product are each rounded once, by at most 2^-53 of themselves,
// so that a quotient below 2^8 is off by less than 2^-43. Within kNear of a boundary it decides
// nothing: neither halfway between two steps nor, where the flag depends on it, at a code.
#include "formats/simd/codes_above.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/codes_above.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr double kNear = 0x1p-42;
constexpr double kMagic = 0x1.8p52;  // added and subtracted: the nearest whole number

CodesAboveCounts codes_of(const CodesAbove& by, const float* x, std::int64_t n,
                          const std::uint32_t* random, std::uint8_t* codes, std::uint8_t* open) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> floats;
  const hn::Rebind<std::int32_t, decltype(d)> integers;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const double steps = std::ldexp(1.0, by.random_bits), near = kNear * steps;
  const auto minimum = hn::Set(d, by.minimum), each = hn::Set(d, steps / by.factor);
  const auto beyond = hn::Set(d, by.high * steps), whole = hn::Set(d, 1 / steps);
  const auto close = hn::Set(d, near), halfway = hn::Set(d, 0.5 - near);
  const auto magic = hn::Set(d, kMagic), zero = hn::Zero(d), one = hn::Set(d, 1.0);
  const auto nearest = [&](auto v) HWY_ATTR { return hn::Sub(hn::Add(v, magic), magic); };
  auto inexact = zero, left = zero;
  const auto convert = [&](const float* from, const std::uint32_t* drawn, std::uint8_t* to,
                           std::uint8_t* marks) HWY_ATTR {
    const auto above = hn::Sub(hn::PromoteTo(d, hn::LoadU(floats, from)), minimum);
    const auto fine = hn::Mul(above, each), step = nearest(fine);
    const auto apart = hn::Abs(hn::Sub(fine, step)), number = hn::Mul(step, whole);
    const auto inside = hn::And(hn::Gt(fine, zero), hn::Lt(fine, beyond));
    const auto at_code = hn::And(hn::Lt(apart, close), hn::Eq(nearest(number), number));
    const auto decided = hn::And(inside, hn::Not(hn::Or(at_code, hn::Gt(apart, halfway))));
    auto sum = number;
    if (by.random_bits != 0) {
      const auto words = hn::LoadU(integers, reinterpret_cast<const std::int32_t*>(drawn));
      sum = hn::MulAdd(hn::PromoteTo(d, words), whole, sum);  // exact
    }
    const auto code = hn::IfThenElseZero(decided, sum);
    const auto mark = hn::IfThenZeroElse(hn::Or(decided, hn::Eq(above, zero)), one);
    inexact = hn::Add(inexact, hn::IfThenElseZero(decided, one));
    left = hn::Add(left, mark);
    hn::StoreU(hn::DemoteTo(bytes, hn::DemoteTo(integers, code)), bytes, to);
    hn::StoreU(hn::DemoteTo(bytes, hn::DemoteTo(integers, mark)), bytes, marks);
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) convert(x + i, random + i, codes + i, open + i);
  if (i < n) {
    constexpr std::size_t kMost = hn::MaxLanes(hn::ScalableTag<double>());
    float last[kMost];
    std::uint32_t drawn[kMost] = {};
    std::uint8_t to[kMost], marks[kMost];
    std::fill_n(last, kMost, static_cast<float>(by.minimum));  // counts as nothing
    std::copy_n(x + i, n - i, last);
    if (by.random_bits != 0) std::copy_n(random + i, n - i, drawn);
    convert(last, drawn, to, marks);
    std::copy_n(to, n - i, codes + i);
    std::copy_n(marks, n - i, open + i);
  }
  return {static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(d, inexact))),
          static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(d, left)))};
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {

HWY_EXPORT(codes_of);

CodesAboveCounts codes_above(const CodesAbove& by, const float* x, std::int64_t n,
                             const std::uint32_t* random, std::uint8_t* codes, std::uint8_t* open) {
  return HWY_DYNAMIC_DISPATCH(codes_of)(by, x, n, random, codes, open);
}

}  // namespace numemu::simd
#endif
