// Exact recombination and one rounding, in vectors of float64; per Highway target.
#include "emu/unit/integer/digit_sums.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/integer/digit_sums.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Doubles = hn::CappedTag<double, 8>;
using DoubleVector = hn::Vec<Doubles>;
using Floats = hn::Rebind<float, Doubles>;
using Integers = hn::Rebind<std::int32_t, Doubles>;

/// Horner's rule from the largest weight on; no step rounds.
HWY_INLINE DoubleVector Recombine(const DigitSums& s, std::int64_t at) {
  const Doubles d;
  const auto base = hn::Set(d, 256.0);
  auto total = hn::Zero(d);
  for (int weight = s.weights - 1; weight >= 0; --weight) {
    const auto plane = hn::LoadU(Integers(), s.planes + weight * kBlock * kBlock + at);
    total = hn::Add(hn::Mul(total, base), hn::PromoteTo(d, plane));
  }
  return s.totals == nullptr ? total : hn::Add(total, hn::LoadU(d, s.totals + at));
}

/// x + y rounded to odd: where the sum is inexact, its neighbour with an odd last bit. Rounding
/// that to 24 bits is rounding the exact sum (Boldo and Melquiond, IEEE Trans. Comput. 57(4), 2008:
/// 53 >= 24 + 2). The error of the sum is exact by Knuth's TwoSum; an infinite y gives it as NaN,
/// which is not taken for an error.
HWY_INLINE DoubleVector AddToOdd(DoubleVector x, DoubleVector y) {
  const Doubles d;
  const hn::RebindToSigned<Doubles> bits;
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
      auto total = hn::Mul(Recombine(s, i * kBlock + j), scale);
      if (c != nullptr) {
        const auto start = hn::LoadU(narrow, c + i * stride + j);
        found |= !hn::AllFalse(codes, hn::Eq(hn::BitCast(codes, start), minus_zero));
        total = AddToOdd(total, hn::PromoteTo(d, start));
      }
      const auto rounded = hn::DemoteTo(narrow, total);
      hn::StoreU(hn::IfThenElse(hn::IsNaN(rounded), canonical, rounded), narrow,
                 to + i * stride + j);
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
