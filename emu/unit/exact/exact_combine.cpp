// Sums cut into two doubles that hold the total exactly, and its one rounding; per Highway target.
#include "emu/unit/exact/exact_combine.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/exact/exact_combine.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "emu/unit/lanes/narrow-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Doubles = hn::CappedTag<double, kCombineSlack>;
using Floats = hn::Rebind<float, Doubles>;

/// Terms cut at one bit; both sums exact (can_combine).
struct Halves {
  hn::Vec<Doubles> high, low;

  /// Adding 1.5 * 2^52 times the unit of the cut rounds to that unit.
  HWY_INLINE void Add(hn::Vec<Doubles> term, hn::Vec<Doubles> cutter) {
    const auto upper = hn::Sub(hn::Add(term, cutter), cutter);
    high = hn::Add(high, upper);
    low = hn::Add(low, hn::Sub(term, upper));
  }
};

void Combine(const CombinedSums& s, double cut, std::int64_t outputs, const float* c, float* d) {
  const Doubles tag;
  const Floats narrow;
  const auto step = static_cast<std::int64_t>(hn::Lanes(tag));
  const auto cutter = hn::Set(tag, cut);
  const hn::RebindToUnsigned<Floats> codes;
  const auto canonical = hn::BitCast(narrow, hn::Set(codes, 0x7fc00000u));
  for (std::int64_t i = 0; i < outputs; i += step) {
    Halves total{hn::Zero(tag), hn::Zero(tag)};
    // Only sign bits: of a total that is zero they are all set or its terms have both signs.
    auto signs = c == nullptr ? hn::Zero(tag) : hn::Set(tag, -0.0);
    for (int p = 0; p < s.count; ++p) {
      const auto term = hn::LoadU(tag, s.sums[p] + i);
      signs = hn::And(signs, term);
      total.Add(term, cutter);
    }
    auto special = s.specials == nullptr ? hn::Zero(tag) : hn::LoadU(tag, s.specials + i);
    if (c != nullptr) {
      const auto start = hn::PromoteTo(tag, hn::LoadU(narrow, c + i));
      signs = hn::And(signs, start);
      special = hn::Add(special, start);
      total.Add(start, cutter);
    }
    const auto sum = AddToOdd(tag, total.high, total.low);
    const auto zero = hn::Eq(sum, hn::Zero(tag));
    auto result = ToFloat32(tag, hn::IfThenElse(zero, signs, sum));
    if (s.specials != nullptr || c != nullptr) {
      // A finite special is a count and C: far less than C's last bit where C is near infinity.
      const auto other = ToFloat32(tag, special);
      const auto ordinary = hn::IsFinite(other);
      result = hn::IfThenElse(ordinary, result, hn::IfThenElse(hn::IsNaN(other), canonical, other));
    }
    hn::StoreU(result, narrow, d + i);
  }
}

}  // namespace

void CombineWhole(const CombinedSums& s, double cut, std::int64_t outputs, const float* c,
                  float* d) {
  Combine(s, cut, outputs, c, d);
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(CombineWhole);

namespace {

/// A term keeps kLowBits bits below the cut.
constexpr int kLowBits = 49, kMostTerms = 16;

}  // namespace

/// With the cut at 2^m, m = low + 49: a term's lower part is a multiple of 2^low of magnitude at
/// most 2^(m - 1), so that up to 16 of them stay at most 2^(m + 3) = 2^(low + 52). Upper parts are
/// multiples of 2^m below or at 2^top: 16 of them are at most 2^(top + 4) <= 2^(m + 52). Terms are
/// below 2^(m + 48), so that 1.5 * 2^(m + 52) and a term keep the unit 2^m. The factors keep every
/// number far from the ends of float64.
bool can_combine(int count, Exponents range) {
  return count < kMostTerms && range.top <= range.low + kLowBits + 48 && range.low >= -900 &&
         range.top <= 800;
}

void combine_sums(const CombinedSums& s, std::int64_t outputs, const float* c, float* d) {
  const double cut = std::ldexp(1.5, s.range.low + kLowBits + 52);
  const std::int64_t whole = outputs / kCombineSlack * kCombineSlack, rest = outputs - whole;
  HWY_DYNAMIC_DISPATCH(CombineWhole)(s, cut, whole, c, d);
  if (rest == 0) return;
  const double* sums[kMostTerms] = {};
  for (int p = 0; p < s.count; ++p) sums[p] = s.sums[p] + whole;
  CombinedSums last = s;
  last.sums = sums;
  if (s.specials != nullptr) last.specials += whole;
  float start[kCombineSlack] = {}, end[kCombineSlack];
  if (c != nullptr) std::copy_n(c + whole, rest, start);
  HWY_DYNAMIC_DISPATCH(CombineWhole)
  (last, cut, kCombineSlack, c == nullptr ? nullptr : start, end);
  std::copy_n(end, rest, d + whole);
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
