// 1:2 by vectors: float32 decides wherever its error cannot matter, integers the one pair in 2^20
// that is left. Exact 2:4 in float64 lanes:
// the operations of rules/mvue.cpp, and its integers only where they could matter.
#include "policies/mask/kernels/mvue.hpp"

#include <algorithm>

#include "formats/float_guard.hpp"
#include "formats/simd/philox.hpp"
#include "policies/mask/unbiased_draws.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "policies/mask/kernels/mvue.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/lanes-inl.hpp"
#include "policies/mask/kernels/quads-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

std::int64_t prune_pairs(const float*, const std::uint32_t*, std::int64_t, float*) { return 0; }
std::int64_t prune_quads(const float*, const std::uint32_t*, std::int64_t, float*) { return 0; }

#else

/// Pairs ready for a decision: a1 and a2 times one power of two, which neither overflow nor are
/// subnormal, and their sum.
struct Scaled {
  FloatVector a, sum;
  FloatMask special;  ///< both lanes of a pair with NaN or infinity, which is 1 and 1 here
};

/// Sums below 2^-100 and their addends are scaled by 2^60, sums beyond the largest number by 1/2,
/// where what is lost is 2^104 times below the other addend. By their bits: a multiplication of a
/// subnormal number takes a hundred cycles. All but subnormal numbers have their field increased;
/// those are whole numbers of 2^-149.
HWY_INLINE Scaled scaled_pairs(FloatVector a, FloatVector sum) {
  constexpr std::uint32_t kStep = 1U << 23, kUp = 60;
  const hn::RebindToSigned<Floats> integers;
  const auto bits = hn::BitCast(integers, a);
  const auto word = [&](std::uint32_t w)
                        HWY_ATTR { return hn::Set(integers, static_cast<std::int32_t>(w)); };
  const auto whole = hn::Mul(hn::ConvertTo(kFloats, bits), set(0x1p-89F));
  const auto up = hn::IfThenElse(hn::Lt(bits, word(kStep)), hn::BitCast(integers, whole),
                                 hn::Add(bits, word(kUp * kStep)));
  const auto down = hn::Max(hn::Sub(bits, word(kStep)), hn::Zero(integers));
  const auto most = hn::Max(bits, hn::BitCast(integers, hn::Shuffle2301(a)));
  const auto special = hn::Gt(most, word(0x7f7fffffU));
  auto scaled = hn::IfThenElse(hn::RebindMask(integers, hn::Lt(sum, set(0x1p-100F))), up, bits);
  scaled =
      hn::IfThenElse(hn::RebindMask(integers, hn::Gt(sum, set(0x1.fffffep127F))), down, scaled);
  scaled = hn::IfThenElse(special, word(127 * kStep), scaled);
  const FloatVector result = hn::BitCast(kFloats, scaled);
  return {result, hn::Add(result, hn::Shuffle2301(result)), hn::RebindMask(kFloats, special)};
}

/// Whole vectors of pairs, each pair in one 64-bit lane; returns how many pairs that were.
std::int64_t prune_pairs(const float* x, const std::uint32_t* words, std::int64_t pairs, float* y) {
  using Wides = hn::RepartitionToWide<Words>;
  constexpr Wides wides;
  const hn::Rebind<std::uint32_t, Wides> narrow;
  const hn::RebindToSigned<Floats> integers;
  const std::int64_t step = lanes() / 2;
  const FloatVector zero = hn::Zero(kFloats), sign = float_of(set(0x80000000U));
  const FloatVector odd_sign =
      float_of(hn::BitCast(kWords, hn::Set(wides, std::uint64_t{0x80000000} << 32)));
  const FloatVector nan_pair =
      float_of(hn::BitCast(kWords, hn::Set(wides, std::uint64_t{0x7fc00000})));
  const FloatVector largest = set(0x1.fffffep127F), tiny = set(0x1p-100F);
  std::int64_t i = 0;
  for (; i + step <= pairs; i += step) {
    const FloatVector v = hn::LoadU(kFloats, x + 2 * i);
    FloatVector a = hn::Abs(v);
    const FloatVector sum = hn::Add(a, hn::Shuffle2301(a));
    FloatVector total = sum;
    FloatMask special = hn::Lt(zero, zero);
    const bool usual = hn::AllTrue(kFloats, hn::And(hn::Ge(sum, tiny), hn::Le(sum, largest)));
    if (HWY_UNLIKELY(!usual)) {
      const Scaled scaled = scaled_pairs(a, sum);
      a = scaled.a, total = scaled.sum, special = scaled.special;
    }
    // The upper 24 bits of u times S: within 2^-24 S of u S, and rounded by at most as much. A
    // difference from a1 that is less than 2^-22 S decides nothing.
    const auto u = hn::ConvertTo(
        kFloats,
        hn::BitCast(integers, hn::ShiftRight<8>(hn::BitCast(
                                  kWords, hn::PromoteTo(wides, hn::LoadU(narrow, words + i))))));
    const FloatVector unit = hn::Mul(total, set(0x1p-24F));
    const FloatVector above = hn::Sub(hn::Mul(u, unit), a);  // in even lanes: u S - a1
    const FloatVector decision = hn::DupEven(above), margin = hn::Mul(unit, set(4.0F));
    const FloatMask sure = hn::Ge(hn::Abs(decision), margin);
    if (HWY_UNLIKELY(!hn::AllTrue(kFloats, sure))) {
      for (std::int64_t p = i; p < i + step; ++p)
        policies::mvue_pair(x + 2 * p, words[p], y + 2 * p);
      continue;
    }
    const FloatMask kept = hn::Lt(hn::Xor(decision, odd_sign), zero);
    FloatVector result = hn::IfThenElseZero(kept, hn::Or(sum, hn::And(v, sign)));
    if (HWY_UNLIKELY(!usual)) result = hn::IfThenElse(special, nan_pair, result);
    hn::StoreU(result, kFloats, y + 2 * i);
  }
  return i;
}

using Doubles = hn::RepartitionToWide<Floats>;
using DoubleVector = hn::Vec<Doubles>;
using DoubleMask = hn::Mask<Doubles>;
using HalfFloats = hn::Rebind<float, Doubles>;
using HalfVector = hn::Vec<HalfFloats>;
constexpr Doubles kDoubles;
constexpr HalfFloats kHalf;

struct Halves {
  HalfVector e0, e1, e2, e3;
};

/// The pruned magnitudes of lanes(Doubles) groups with at least three elements that are
/// not zero; `sure` is cleared where the integers must decide.
HWY_INLINE Halves prune_half(const Halves& a, hn::Vec<hn::Rebind<std::uint32_t, Doubles> > r,
                             DoubleMask& sure) {
  const auto f64 = [](double v) HWY_ATTR { return hn::Set(kDoubles, v); };
  const DoubleVector zero = hn::Zero(kDoubles), one = f64(0x1p32);
  const DoubleVector a0 = hn::PromoteTo(kDoubles, a.e0), a1 = hn::PromoteTo(kDoubles, a.e1),
                     a2 = hn::PromoteTo(kDoubles, a.e2), a3 = hn::PromoteTo(kDoubles, a.e3);
  const auto sum_of = [](DoubleVector p, DoubleVector q, DoubleVector s, DoubleVector t)
                          HWY_ATTR { return hn::Add(hn::Add(hn::Add(p, q), s), t); };
  const DoubleVector sum = sum_of(a0, a1, a2, a3);
  const auto is_large = [&](DoubleVector v) HWY_ATTR { return hn::Ge(hn::Add(v, v), sum); };
  const DoubleMask large0 = is_large(a0), large1 = is_large(a1), large2 = is_large(a2),
                   large3 = is_large(a3);
  const DoubleVector d0 = hn::IfThenZeroElse(large0, a0), d1 = hn::IfThenZeroElse(large1, a1),
                     d2 = hn::IfThenZeroElse(large2, a2), d3 = hn::IfThenZeroElse(large3, a3);
  const DoubleVector c1 = hn::Add(d0, d1), c2 = hn::Add(c1, d2), drawn = hn::Add(c2, d3);
  const DoubleMask any = hn::Or(hn::Or(large0, large1), hn::Or(large2, large3));
  // Two large ones beside a third that is not zero: only in rounding; left to the integers.
  const DoubleMask many = hn::Or(hn::Or(hn::And(large0, hn::Or(large1, hn::Or(large2, large3))),
                                        hn::And(large1, hn::Or(large2, large3))),
                                 hn::And(large2, large3));
  const DoubleVector total = hn::IfThenElse(any, one, f64(0x1p33));
  const DoubleVector unit = hn::Div(total, drawn);
  const DoubleVector share = hn::Mul(drawn, hn::IfThenElse(any, f64(1), f64(0.5)));

  const hn::Repartition<std::uint64_t, Doubles> wides;
  DoubleVector point = hn::Sub(
      hn::BitCast(kDoubles, hn::Or(hn::PromoteTo(wides, r), hn::Set(wides, 0x4330000000000000))),
      f64(0x1p52));
  // Rounding of the limits to integers, and keeping their steps in order, moves them by less
  // than 2.
  DoubleVector nearest = f64(0x1p40);
  const auto meets = [&](DoubleVector cumulated) HWY_ATTR {
    const DoubleVector limit = hn::Mul(cumulated, unit);
    nearest = hn::Min(nearest, hn::Abs(hn::Sub(limit, point)));
    const DoubleMask met = hn::Lt(point, limit);
    point = hn::IfThenElse(met, hn::Add(point, one), point);
    return met;
  };
  const DoubleMask m0 = meets(d0), m1 = meets(c1), m2 = meets(c2), m3 = meets(drawn);
  sure = hn::AndNot(many, hn::Ge(nearest, f64(2)));
  const auto left = [&](DoubleMask large, DoubleMask met, DoubleVector v) HWY_ATTR {
    return hn::DemoteTo(kHalf, hn::IfThenElse(large, v, hn::IfThenElse(met, share, zero)));
  };
  return {left(large0, m0, a0), left(large1, m1, a1), left(large2, m2, a2), left(large3, m3, a3)};
}

/// The magnitudes of lanes() groups, and the groups that are not for the integers.
HWY_INLINE FloatMask prune_some(const Quads& x, WordVector r, Quads& y) {
  const Quads a = {hn::Abs(x.e0), hn::Abs(x.e1), hn::Abs(x.e2), hn::Abs(x.e3)};
  const FloatMask two = at_most_two(a);
  const auto low = [](FloatVector v) HWY_ATTR { return hn::LowerHalf(kHalf, v); };
  const auto high = [](FloatVector v) HWY_ATTR { return hn::UpperHalf(kHalf, v); };
  const hn::Rebind<std::uint32_t, Doubles> half_words;
  DoubleMask sure_low, sure_high;
  const Halves y_low = prune_half({low(a.e0), low(a.e1), low(a.e2), low(a.e3)},
                                  hn::LowerHalf(half_words, r), sure_low);
  const Halves y_high = prune_half({high(a.e0), high(a.e1), high(a.e2), high(a.e3)},
                                   hn::UpperHalf(half_words, r), sure_high);
  // As float lanes, so that `two` can excuse a group.
  const auto ones = [](DoubleMask m) HWY_ATTR {
    return hn::DemoteTo(kHalf, hn::IfThenElseZero(m, hn::Set(kDoubles, 1.0)));
  };
  const FloatVector sure = hn::Combine(kFloats, ones(sure_high), ones(sure_low));
  const FloatVector sum = hn::Add(hn::Add(a.e0, a.e1), hn::Add(a.e2, a.e3));
  const auto whole = [&](HalfVector lower, HalfVector upper, FloatVector same) HWY_ATTR {
    return hn::IfThenElse(two, same, hn::Combine(kFloats, upper, lower));
  };
  y = {whole(y_low.e0, y_high.e0, a.e0), whole(y_low.e1, y_high.e1, a.e1),
       whole(y_low.e2, y_high.e2, a.e2), whole(y_low.e3, y_high.e3, a.e3)};
  return hn::And(hn::Le(sum, set(0x1.fffffep127F)), hn::Or(two, hn::Gt(sure, hn::Zero(kFloats))));
}

std::int64_t prune_quads(const float* x, const std::uint32_t* words, std::int64_t groups,
                         float* y) {
  const auto order = quad_order();
  return prune_vectors(
      x, groups, y,
      [&](std::int64_t g, const Quads& from, Quads& to) HWY_ATTR {
        return prune_some(from, hn::TableLookupLanes(hn::LoadU(kWords, words + g), order), to);
      },
      [&](std::int64_t g, float* to) {
        policies::mvue_group({2, 4}, x + 4 * g, words[g], to);
      });
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {
namespace {

HWY_EXPORT(prune_pairs);
HWY_EXPORT(prune_quads);

std::int64_t whole_vectors_of_pairs(const float* x, const std::uint32_t* words, std::int64_t pairs,
                                    float* y) {
  return HWY_DYNAMIC_DISPATCH(prune_pairs)(x, words, pairs, y);
}
std::int64_t whole_vectors_of_quads(const float* x, const std::uint32_t* words, std::int64_t groups,
                                    float* y) {
  return HWY_DYNAMIC_DISPATCH(prune_quads)(x, words, groups, y);
}

}  // namespace
}  // namespace numemu::simd

namespace numemu::policies {

void mvue_pair(const float* x, std::uint32_t r, float* y) {
  const float a1 = std::fabs(x[0]), a2 = std::fabs(x[1]);
  if (std::isinf(group_amax(x, 2))) return write_nan_group(1, 2, y);
  const float x1 = x[0], x2 = x[1], sum = a1 + a2;
  const bool overflows = std::isinf(sum);
  // Halves are exact here but for a2 < 2^-125, which 2^104 and more lies above.
  const bool first = overflows ? draws_below(r, a1 / 2 + a2 / 2, a1 / 2) : draws_below(r, sum, a1);
  y[0] = first ? signed_like(sum, x1) : 0.0F;
  y[1] = first ? 0.0F : signed_like(sum, x2);
}

void mvue_pairs_reference(const RandomSource& random, const MaskRun& run) {
  const FloatGuard guard;
  for_each_batch(run, 2, [&](const float* x, std::uint64_t first, std::int64_t pairs, float* y) {
    for (std::int64_t i = 0; i < pairs; ++i)
      mvue_pair(x + 2 * i, random.bits(first + static_cast<std::uint64_t>(i), 32), y + 2 * i);
  });
}

void mvue_pairs(const RandomSource& random, const MaskRun& run) {
  const FloatGuard guard;
  for_each_batch(run, 2, [&](const float* x, std::uint64_t first, std::int64_t pairs, float* y) {
    alignas(64) std::uint32_t words[kUnbiasedBatch / 2];
    simd::fill_random(random, 32, first, pairs, words);
    for (std::int64_t i = simd::whole_vectors_of_pairs(x, words, pairs, y); i < pairs; ++i)
      mvue_pair(x + 2 * i, words[i], y + 2 * i);
  });
}

std::int64_t mvue_quads(const float* x, const std::uint32_t* words, std::int64_t groups, float* y) {
  return simd::whole_vectors_of_quads(x, words, groups, y);
}

}  // namespace numemu::policies
#endif
