// Mask rule mvue-approx: unbiased 2:4 by two draws in turn, at most twice the least variance.
//
// Sixteen groups at a time (of 16 lanes): transposed, drawn, divided, transposed back.
#include "policies/mask/rules/mvue_approx.hpp"

#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/simd/philox.hpp"
#include "policies/mask/mvue_variance.hpp"
#include "policies/mask/unbiased_draws.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "policies/mask/rules/mvue_approx.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/lanes-inl.hpp"
#include "policies/mask/kernels/quads-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

std::int64_t prune_approximately(const float*, const std::uint32_t*, const std::uint32_t*,
                                 std::int64_t, float*) {
  return 0;
}

#else

/// Groups whose largest magnitude is at least this are scaled by 2^-64 first.
constexpr float kScaledFrom = 0x1p124F;
/// Bits of an exponent, and of the least magnitude with which no operation meets subnormal numbers.
constexpr std::int32_t kBinade = 1 << 23;
constexpr std::uint32_t kUsualFrom = 27U << 23;  // 2^-100
constexpr float kRaise = 0x1p64F;
constexpr int kRaised = 64;

constexpr hn::RebindToSigned<Floats> kIntegers;
using IntegerVector = hn::Vec<decltype(kIntegers)>;

HWY_INLINE IntegerVector integers_of(FloatVector x) { return hn::BitCast(kIntegers, x); }
HWY_INLINE IntegerVector set(std::int32_t x) { return hn::Set(kIntegers, x); }

/// Below which of its limits a draw lies, and where that is sure. From the upper 24 bits of its
/// word; how far from a limit it must be: as for pairs, kernels/mvue.cpp.
struct Drawn {
  FloatMask below0, below1, below2, sure;
};

HWY_INLINE Drawn drawn(WordVector r, FloatVector total, FloatVector limit0, FloatVector limit1,
                       FloatVector limit2) {
  const FloatVector u = hn::ConvertTo(kFloats, hn::BitCast(kIntegers, hn::ShiftRight<8>(r)));
  const FloatVector unit = hn::Mul(total, set(0x1p-24F)), at = hn::Mul(u, unit);
  const auto distance = [at](FloatVector limit) HWY_ATTR { return hn::Abs(hn::Sub(at, limit)); };
  const FloatVector nearest =
      hn::Min(hn::Min(distance(limit0), distance(limit1)), distance(limit2));
  return {hn::Lt(at, limit0), hn::Lt(at, limit1), hn::Lt(at, limit2),
          hn::Ge(nearest, hn::Mul(unit, set(4.0F)))};
}

/// The operations on groups of which no magnitude is small or large.
struct Usual {
  static HWY_INLINE Drawn draw(WordVector r, FloatVector total, FloatVector limit0,
                               FloatVector limit1, FloatVector limit2) {
    return drawn(r, total, limit0, limit1, limit2);
  }
  static HWY_INLINE FloatVector quotient(FloatVector a, FloatVector others) {
    return hn::Div(a, others);
  }
  HWY_INLINE FloatVector kept(FloatVector sum, FloatVector k, FloatMask&) const {
    return hn::Div(sum, k);
  }
};

/// x < 2^63 times 2^64, by its bits: a multiplication or division of a subnormal number takes a
/// hundred cycles, as one whose result is subnormal.
HWY_INLINE FloatVector raised(FloatVector x) {
  const IntegerVector bits = integers_of(x);
  const FloatVector whole = hn::Mul(hn::ConvertTo(kFloats, bits), set(0x1p-85F));  // of 2^-149
  return hn::IfThenElse(hn::RebindMask(kFloats, hn::Lt(bits, set(kBinade))), whole,
                        hn::BitCast(kFloats, hn::Add(bits, set(kRaised * kBinade))));
}

HWY_INLINE FloatVector raised_where(FloatMask where, FloatVector x) {
  return hn::IfThenElse(where, raised(x), x);
}

/// The same for any magnitudes; those of `huge` groups have been scaled.
struct AnySize {
  FloatMask huge;

  static HWY_INLINE Drawn draw(WordVector r, FloatVector total, FloatVector limit0,
                               FloatVector limit1, FloatVector limit2) {
    const FloatMask small = hn::Lt(total, set(0x1p-60F));
    return drawn(r, raised_where(small, total), raised_where(small, limit0),
                 raised_where(small, limit1), raised_where(small, limit2));
  }

  static HWY_INLINE FloatVector quotient(FloatVector a, FloatVector others) {
    // Beside 1 nothing below 2^-59 counts, nor does it beside another quotient that counts.
    const auto faint = hn::Gt(hn::Sub(integers_of(others), set(60 * kBinade)), integers_of(a));
    const FloatVector part = hn::IfThenZeroElse(hn::RebindMask(kFloats, faint), a);
    const FloatMask small = hn::Lt(others, set(0x1p-60F)),
                    both = hn::And(small, hn::Lt(part, set(0x1p-60F)));
    const FloatVector q = hn::Div(raised_where(both, part), raised_where(small, others));
    return hn::IfThenElse(hn::AndNot(both, small), hn::Mul(q, set(kRaise)), q);
  }

  /// sum / k; subnormal results are whole numbers, on which the sign of the remainder decides where
  /// the quotient seems to be half way between two.
  HWY_INLINE FloatVector kept(FloatVector sum, FloatVector k, FloatMask& sure) const {
    const FloatMask small = hn::Lt(sum, set(0x1p60F)),
                    far = hn::AndNot(small, hn::Gt(k, set(kRaise)));
    const FloatVector dividend = raised_where(small, sum),
                      divisor = hn::IfThenElse(far, hn::Mul(k, set(1 / kRaise)), k);
    const FloatVector q = hn::Div(dividend, divisor);  // 2^64 times the result where small or far
    const FloatMask high = hn::Or(small, far), below = hn::And(high, hn::Lt(q, set(0x1p-62F)));
    const FloatVector units = hn::Mul(hn::IfThenElseZero(below, q), set(0x1p85F));
    const FloatVector nearest = hn::ConvertTo(kFloats, hn::NearestInt(units));
    const FloatMask tie = hn::Eq(hn::Abs(hn::Sub(units, nearest)), set(0.5F));
#if HWY_NATIVE_FMA
    const FloatVector rest = hn::NegMulAdd(q, divisor, dividend), zero = hn::Zero(kFloats);
    const FloatVector half = hn::IfThenElse(hn::Gt(rest, zero), set(0.5F), set(-0.5F));
    const FloatMask decides = hn::And(tie, hn::Or(hn::Gt(rest, zero), hn::Lt(rest, zero)));
    const FloatVector whole = hn::IfThenElse(decides, hn::Add(units, half), nearest);
#else
    sure = hn::AndNot(tie, sure);
    const FloatVector whole = nearest;
#endif
    (void)sure;
    const FloatVector lowered = hn::BitCast(
        kFloats, hn::IfThenElse(hn::RebindMask(kIntegers, below), hn::ConvertTo(kIntegers, whole),
                                hn::Sub(integers_of(q), set(kRaised * kBinade))));
    const FloatVector of_group = hn::IfThenElse(high, lowered, q);
    // Of huge groups 2^64 times as much, which is never subnormal.
    const FloatVector times = hn::IfThenElse(
        high, hn::IfThenElse(below, hn::Mul(whole, set(0x1p-85F)), q), hn::Mul(q, set(kRaise)));
    return hn::IfThenElse(huge, times, of_group);
  }
};

/// The magnitudes of lanes() groups that the draws leave, and where they are not for the reference.
/// The order of operations is that of mvue_approx_group().
template <class Arithmetic>
HWY_INLINE FloatMask prune_by(const Arithmetic& of, const Quads& a, WordVector r1, WordVector r2,
                              Quads& y) {
  const FloatVector a0 = a.e0, a1 = a.e1, a2 = a.e2, a3 = a.e3, one = set(1.0F);
  const FloatVector s01 = hn::Add(a0, a1), s23 = hn::Add(a2, a3), s012 = hn::Add(s01, a2);
  const FloatVector sum = hn::Add(s01, s23);

  const Drawn first = of.draw(r1, sum, a0, s01, s012);
  const FloatMask to0 = first.below0, to1 = first.below1, to2 = first.below2;
  const FloatVector b0 = hn::IfThenElse(to0, a1, a0), b1 = hn::IfThenElse(to1, a2, a1),
                    b2 = hn::IfThenElse(to2, a3, a2);
  const FloatVector b01 = hn::Add(b0, b1);
  const Drawn second = of.draw(r2, hn::Add(b01, b2), b0, b01, b01);
  const FloatMask then0 = second.below0, then1 = second.below1;
  FloatMask sure = hn::And(first.sure, second.sure);

  const FloatVector q0 = of.quotient(a0, hn::Add(a1, s23)), q1 = of.quotient(a1, hn::Add(a0, s23)),
                    q2 = of.quotient(a2, hn::Add(a3, s01)), q3 = of.quotient(a3, hn::Add(a2, s01));
  const FloatVector q01 = hn::Add(q0, q1), q23 = hn::Add(q2, q3);
  const FloatVector k0 = hn::Add(hn::Add(one, q1), q23), k1 = hn::Add(hn::Add(one, q0), q23),
                    k2 = hn::Add(hn::Add(one, q3), q01), k3 = hn::Add(hn::Add(one, q2), q01);
  const FloatVector k_first =
      hn::IfThenElse(to0, k0, hn::IfThenElse(to1, k1, hn::IfThenElse(to2, k2, k3)));
  const FloatVector l0 = hn::IfThenElse(to0, k1, k0), l1 = hn::IfThenElse(to1, k2, k1),
                    l2 = hn::IfThenElse(to2, k3, k2);
  const FloatVector k_then = hn::IfThenElse(then0, l0, hn::IfThenElse(then1, l1, l2));
  const FloatVector y_first = of.kept(sum, k_first, sure), y_then = of.kept(sum, k_then, sure);

  const FloatVector c0 = hn::IfThenElseZero(then0, y_then);
  const FloatVector c1 = hn::IfThenElseZero(hn::AndNot(then0, then1), y_then);
  const FloatVector c2 = hn::IfThenZeroElse(then1, y_then);
  y = {hn::IfThenElse(to0, y_first, c0), hn::IfThenElse(to0, c0, hn::IfThenElse(to1, y_first, c1)),
       hn::IfThenElse(to1, c1, hn::IfThenElse(to2, y_first, c2)), hn::IfThenElse(to2, c2, y_first)};
  return sure;
}

HWY_INLINE Quads choose(FloatMask where, const Quads& x, const Quads& y) {
  return {hn::IfThenElse(where, x.e0, y.e0), hn::IfThenElse(where, x.e1, y.e1),
          hn::IfThenElse(where, x.e2, y.e2), hn::IfThenElse(where, x.e3, y.e3)};
}

/// Groups with zeros, NaN, infinities, small and huge numbers, all by vectors.
HWY_NOINLINE FloatMask prune_any(const Quads& a, WordVector r1, WordVector r2, Quads& y) {
  const auto lowered = [](FloatVector x) HWY_ATTR {  // times 2^-64, rounded once
    const IntegerVector bits = integers_of(x);
    // Of 2^-149; what is below 2^-100 becomes zero in any case.
    const FloatVector counted = hn::IfThenElseZero(hn::Ge(x, set(0x1p-100F)), x);
    const FloatVector units =
        hn::Mul(hn::IfThenElseZero(hn::Lt(x, set(0x1p-62F)), counted), set(0x1p85F));
    return hn::BitCast(
        kFloats, hn::IfThenElse(hn::Lt(bits, set((127 - 62) * kBinade)), hn::NearestInt(units),
                                hn::Sub(bits, set(kRaised * kBinade))));
  };
  const IntegerVector largest = hn::Max(hn::Max(integers_of(a.e0), integers_of(a.e1)),
                                        hn::Max(integers_of(a.e2), integers_of(a.e3)));
  const FloatVector zero = hn::Zero(kFloats), nan = float_of(set(0x7fc00000U));
  const FloatMask special = hn::RebindMask(kFloats, hn::Gt(largest, set(0x7f7fffff)));
  const Quads finite = choose(special, {zero, zero, zero, zero}, a);
  const AnySize of = {hn::AndNot(special, hn::Ge(hn::BitCast(kFloats, largest), set(kScaledFrom)))};
  const Quads scaled = choose(
      of.huge, {lowered(finite.e0), lowered(finite.e1), lowered(finite.e2), lowered(finite.e3)},
      finite);
  const FloatMask sure = prune_by(of, scaled, r1, r2, y), two = at_most_two(finite);
  y = choose(special, {nan, nan, zero, zero}, choose(two, finite, y));
  return hn::Or(sure, two);  // `two` where special, too
}

/// The magnitudes of lanes() groups, and the groups that are not for the reference.
HWY_INLINE FloatMask prune_some(const Quads& x, WordVector r1, WordVector r2, Quads& y) {
  const Quads a = {hn::Abs(x.e0), hn::Abs(x.e1), hn::Abs(x.e2), hn::Abs(x.e3)};
  const FloatVector sum = hn::Add(hn::Add(a.e0, a.e1), hn::Add(a.e2, a.e3));
  const auto before = [](FloatVector v) HWY_ATTR {  // zeros become the largest
    return hn::Sub(bits_of(v), set(1U));
  };
  const WordVector least =
      hn::Min(hn::Min(before(a.e0), before(a.e1)), hn::Min(before(a.e2), before(a.e3)));
  const FloatMask large_enough =
      hn::RebindMask(kFloats, hn::Eq(hn::Max(least, set(kUsualFrom - 1)), least));
  if (HWY_UNLIKELY(!hn::AllTrue(kFloats, hn::And(large_enough, hn::Lt(sum, set(kScaledFrom))))))
    return prune_any(a, r1, r2, y);
  const FloatMask two = at_most_two(a), sure = prune_by(Usual(), a, r1, r2, y);
  y = choose(two, a, y);
  return hn::Or(sure, two);
}

/// Whole vectors of groups; returns how many groups that were.
std::int64_t prune_approximately(const float* x, const std::uint32_t* words1,
                                 const std::uint32_t* words2, std::int64_t groups, float* y) {
  const auto order = quad_order();
  return prune_vectors(
      x, groups, y,
      [&](std::int64_t g, const Quads& from, Quads& to) HWY_ATTR {
        return prune_some(from, hn::TableLookupLanes(hn::LoadU(kWords, words1 + g), order),
                          hn::TableLookupLanes(hn::LoadU(kWords, words2 + g), order), to);
      },
      [&](std::int64_t g, float* to) {
        policies::mvue_approx_group(x + 4 * g, words1[g], words2[g], to);
      });
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {
namespace {

HWY_EXPORT(prune_approximately);

std::int64_t whole_vectors(const float* x, const std::uint32_t* words1, const std::uint32_t* words2,
                           std::int64_t groups, float* y) {
  return HWY_DYNAMIC_DISPATCH(prune_approximately)(x, words1, words2, groups, y);
}

}  // namespace
}  // namespace numemu::simd

namespace numemu::policies {
namespace {

constexpr int kGroup = 4;

/// What a group is multiplied with, so that its sums do not overflow.
float scale_of(float amax) { return amax >= 0x1p124F ? 0x1p-64F : 1.0F; }

}  // namespace

void mvue_approx_group(const float* x, std::uint32_t r1, std::uint32_t r2, float* y) {
  const float amax = group_amax(x, kGroup);
  if (std::isinf(amax)) return write_nan_group(2, kGroup, y);
  const float scale = scale_of(amax);
  float a[kGroup];
  int present = 0;
  for (int i = 0; i < kGroup; ++i) {
    a[i] = std::fabs(x[i]) * scale;
    present += x[i] != 0 ? 1 : 0;
  }
  if (present <= 2) {
    for (int i = 0; i < kGroup; ++i) y[i] = x[i] + 0.0F;  // -0 becomes +0
    return;
  }
  const float s01 = a[0] + a[1], s23 = a[2] + a[3], sum = s01 + s23;
  const int i = draws_below(r1, sum, a[0])         ? 0
                : draws_below(r1, sum, s01)        ? 1
                : draws_below(r1, sum, s01 + a[2]) ? 2
                                                   : 3;
  const float b0 = a[i > 0 ? 0 : 1], b1 = a[i > 1 ? 1 : 2], b2 = a[i > 2 ? 2 : 3];
  const float b01 = b0 + b1, rest = b01 + b2;
  const int among = draws_below(r2, rest, b0) ? 0 : draws_below(r2, rest, b01) ? 1 : 2;
  const int j = among < i ? among : among + 1;

  const float q[kGroup] = {a[0] / (a[1] + s23), a[1] / (a[0] + s23), a[2] / (a[3] + s01),
                           a[3] / (a[2] + s01)};
  const float q01 = q[0] + q[1], q23 = q[2] + q[3];
  // S p_k / a_k
  const float k[kGroup] = {(1 + q[1]) + q23, (1 + q[0]) + q23, (1 + q[3]) + q01, (1 + q[2]) + q01};
  float kept[kGroup] = {};
  kept[i] = sum / k[i] / scale;
  kept[j] = sum / k[j] / scale;
  for (int e = 0; e < kGroup; ++e) y[e] = signed_like(kept[e], x[e]);
}

void mvue_approx_reference(const RandomSource& random, const MaskRun& run) {
  const FloatGuard guard;
  RandomSource second = random;
  second.draw = static_cast<std::uint16_t>(random.draw + 1);
  for_each_batch(run, kGroup,
                 [&](const float* x, std::uint64_t first, std::int64_t groups, float* y) {
                   for (std::int64_t g = 0; g < groups; ++g) {
                     const std::uint64_t group = first + static_cast<std::uint64_t>(g);
                     mvue_approx_group(x + kGroup * g, random.bits(group, 32),
                                       second.bits(group, 32), y + kGroup * g);
                   }
                 });
}

void mvue_approx(const RandomSource& random, const MaskRun& run) {
  const FloatGuard guard;
  RandomSource second = random;
  second.draw = static_cast<std::uint16_t>(random.draw + 1);
  for_each_batch(
      run, kGroup, [&](const float* x, std::uint64_t first, std::int64_t groups, float* y) {
        alignas(64) std::uint32_t words1[kUnbiasedBatch / kGroup], words2[kUnbiasedBatch / kGroup];
        simd::fill_random(random, 32, first, groups, words1);
        simd::fill_random(second, 32, first, groups, words2);
        for (std::int64_t g = simd::whole_vectors(x, words1, words2, groups, y); g < groups; ++g)
          mvue_approx_group(x + kGroup * g, words1[g], words2[g], y + kGroup * g);
      });
}

extern const MaskRule mask_mvue_approx{
    .name = "mvue-approx",
    .summary = "unbiased 2:4 by two draws, without sorting; below twice the least variance",
    .source = "Chmiel et al., ICLR 2023 (arXiv 2203.10991)",
    .span = MaskSpan::group,
    .random = true,
    .unbiased = true,
    .options = {},
    .prune = [](const MaskPolicy&, const RandomSource& random,
                const MaskRun& run) { mvue_approx(random, run); },
    .error = [](const MaskPolicy& policy, const float* x, std::int64_t,
                double) { return estimator_variance(Estimator::approx, policy.pattern, x); },
    .check =
        [](const MaskPolicy& policy) {
          const unit::Pattern& p = policy.pattern;
          if (p.kept != 2 || p.group != 4 || p.pairwise)
            throw Error("mvue-approx(" + unit::to_string(p) +
                        "): expected 2:4, the only pattern of this rule; mvue takes any");
        }};

}  // namespace numemu::policies
#endif
