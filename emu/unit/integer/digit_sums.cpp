// Exact recombination and one rounding, in vectors of float64; per Highway target.
#include "emu/unit/integer/digit_sums.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/integer/digit_sums.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "emu/unit/lanes/narrow-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Doubles = hn::CappedTag<double, 8>;
using DoubleVector = hn::Vec<Doubles>;
using Floats = hn::Rebind<float, Doubles>;
using Integers = hn::Rebind<std::int32_t, Doubles>;

HWY_INLINE hn::Vec<Integers> Plane(const DigitSums& s, int weight, std::int64_t at) {
  return hn::LoadU(Integers(), s.planes + weight * kBlock * kBlock + at);
}

/// Horner's rule from the largest weight on, two weights a step where int32 holds both; no step
/// rounds, so that it does not matter whether multiply-adds are fused.
HWY_INLINE DoubleVector Recombine(const DigitSums& s, std::int64_t at) {
  const Doubles d;
  int weight = s.weights - 1;
  auto total = hn::Zero(d);
  if (s.joins) {
    const auto base = hn::Set(d, 65536.0);
    if (weight % 2 == 0) total = hn::PromoteTo(d, Plane(s, weight--, at));
    for (; weight > 0; weight -= 2) {
      const auto high = hn::ShiftLeft<8>(Plane(s, weight, at));
      const auto both = hn::PromoteTo(d, hn::Add(high, Plane(s, weight - 1, at)));
      total = hn::MulAdd(total, base, both);
    }
  } else {
    const auto base = hn::Set(d, 256.0);
    for (; weight >= 0; --weight)
      total = hn::MulAdd(total, base, hn::PromoteTo(d, Plane(s, weight, at)));
  }
  return s.totals == nullptr ? total : hn::Add(total, hn::LoadU(d, s.totals + at));
}

void Fold(const DigitSums& s) {
  const Doubles d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < kBlock * kBlock; i += step)
    hn::StoreU(Recombine(s, i), d, s.totals + i);
}

/// Whole rows of kBlock.
bool Round(const DigitSums& s, std::int64_t rows, const float* c, float* to, std::int64_t stride) {
  const Doubles d;
  const Floats narrow;
  const hn::RebindToUnsigned<Floats> codes;
  const auto scale = hn::Set(d, s.scale);
  const auto canonical = hn::BitCast(narrow, hn::Set(codes, 0x7fc00000u));
  const auto minus_zero = hn::Set(codes, 0x80000000u);
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  bool found = false;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < kBlock; j += step) {
      const auto total = hn::Mul(Recombine(s, i * kBlock + j), scale);
      float* output = to + i * stride + j;
      if (c == nullptr) {
        hn::StoreU(ToFloat32(d, total), narrow, output);
        continue;
      }
      const auto start = hn::LoadU(narrow, c + i * stride + j);
      found |= !hn::AllFalse(codes, hn::Eq(hn::BitCast(codes, start), minus_zero));
      const auto rounded = ToFloat32(d, AddToOdd(d, total, hn::PromoteTo(d, start)));
      hn::StoreU(hn::IfThenElse(hn::IsNaN(rounded), canonical, rounded), narrow, output);
    }
  }
  return found;
}

}  // namespace
}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(Fold);
HWY_EXPORT(Round);

void fold_digit_sums(const DigitSums& s) { HWY_DYNAMIC_DISPATCH(Fold)(s); }

bool round_digit_sums(const DigitSums& s, std::int64_t rows, std::int64_t lanes, const float* c,
                      float* d, std::int64_t stride) {
  if (lanes == kBlock) return HWY_DYNAMIC_DISPATCH(Round)(s, rows, c, d, stride);
  float block[kBlock * kBlock] = {};
  for (std::int64_t i = 0; i < rows && c != nullptr; ++i)
    std::copy_n(c + i * stride, lanes, block + i * kBlock);
  const bool found =
      HWY_DYNAMIC_DISPATCH(Round)(s, rows, c == nullptr ? nullptr : block, block, kBlock);
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(block + i * kBlock, lanes, d + i * stride);
  return found;
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
