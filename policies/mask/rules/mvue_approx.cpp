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

/// Sums from here on may be of groups that the reference scales.
constexpr float kScaledFrom = 0x1p124F;

/// A draw times `total`, from the upper 24 bits of its word, and how far from a limit it must be to
/// decide (as for pairs, kernels/mvue.cpp).
struct Draw {
  FloatVector at, margin;
};

HWY_INLINE Draw draw(WordVector r, FloatVector total) {
  const hn::RebindToSigned<Floats> integers;
  const FloatVector u = hn::ConvertTo(kFloats, hn::BitCast(integers, hn::ShiftRight<8>(r)));
  const FloatVector unit = hn::Mul(total, set(0x1p-24F));
  return {hn::Mul(u, unit), hn::Max(hn::Mul(unit, set(4.0F)), hn::Min(total, set(0x1p-100F)))};
}

HWY_INLINE FloatVector distance(const Draw& d, FloatVector limit) {
  return hn::Abs(hn::Sub(d.at, limit));
}

/// The magnitudes of lanes() groups, and the groups that are not for the reference. The order of
/// operations is that of mvue_approx_group().
HWY_INLINE FloatMask prune_some(const Quads& x, WordVector r1, WordVector r2, Quads& y) {
  const FloatVector a0 = hn::Abs(x.e0), a1 = hn::Abs(x.e1), a2 = hn::Abs(x.e2), a3 = hn::Abs(x.e3);
  const FloatVector one = set(1.0F);
  const FloatMask two = at_most_two({a0, a1, a2, a3});

  const FloatVector s01 = hn::Add(a0, a1), s23 = hn::Add(a2, a3), s012 = hn::Add(s01, a2);
  const FloatVector sum = hn::Add(s01, s23);
  FloatMask sure = hn::Lt(sum, set(kScaledFrom));  // false for NaN

  const Draw d1 = draw(r1, sum);
  const FloatVector near1 =
      hn::Min(hn::Min(distance(d1, a0), distance(d1, s01)), distance(d1, s012));
  sure = hn::And(sure, hn::Ge(near1, d1.margin));
  const FloatMask to0 = hn::Lt(d1.at, a0), to1 = hn::Lt(d1.at, s01), to2 = hn::Lt(d1.at, s012);

  const FloatVector b0 = hn::IfThenElse(to0, a1, a0), b1 = hn::IfThenElse(to1, a2, a1),
                    b2 = hn::IfThenElse(to2, a3, a2);
  const FloatVector b01 = hn::Add(b0, b1);
  const Draw d2 = draw(r2, hn::Add(b01, b2));
  const FloatVector near2 = hn::Min(distance(d2, b0), distance(d2, b01));
  sure = hn::And(sure, hn::Ge(near2, d2.margin));
  const FloatMask then0 = hn::Lt(d2.at, b0), then1 = hn::Lt(d2.at, b01);

  const FloatVector q0 = hn::Div(a0, hn::Add(a1, s23)), q1 = hn::Div(a1, hn::Add(a0, s23)),
                    q2 = hn::Div(a2, hn::Add(a3, s01)), q3 = hn::Div(a3, hn::Add(a2, s01));
  const FloatVector q01 = hn::Add(q0, q1), q23 = hn::Add(q2, q3);
  const FloatVector k0 = hn::Add(hn::Add(one, q1), q23), k1 = hn::Add(hn::Add(one, q0), q23),
                    k2 = hn::Add(hn::Add(one, q3), q01), k3 = hn::Add(hn::Add(one, q2), q01);
  const FloatVector first =
      hn::IfThenElse(to0, k0, hn::IfThenElse(to1, k1, hn::IfThenElse(to2, k2, k3)));
  const FloatVector l0 = hn::IfThenElse(to0, k1, k0), l1 = hn::IfThenElse(to1, k2, k1),
                    l2 = hn::IfThenElse(to2, k3, k2);
  const FloatVector then = hn::IfThenElse(then0, l0, hn::IfThenElse(then1, l1, l2));
  const FloatVector y_first = hn::Div(sum, first), y_then = hn::Div(sum, then);

  const FloatVector c0 = hn::IfThenElseZero(then0, y_then);
  const FloatVector c1 = hn::IfThenElseZero(hn::AndNot(then0, then1), y_then);
  const FloatVector c2 = hn::IfThenZeroElse(then1, y_then);
  const FloatVector y0 = hn::IfThenElse(to0, y_first, c0);
  const FloatVector y1 = hn::IfThenElse(to0, c0, hn::IfThenElse(to1, y_first, c1));
  const FloatVector y2 = hn::IfThenElse(to1, c1, hn::IfThenElse(to2, y_first, c2));
  const FloatVector y3 = hn::IfThenElse(to2, c2, y_first);

  y = {hn::IfThenElse(two, a0, y0), hn::IfThenElse(two, a1, y1), hn::IfThenElse(two, a2, y2),
       hn::IfThenElse(two, a3, y3)};
  return sure;
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

extern const MaskRule mask_mvue_approx;
const MaskRule mask_mvue_approx{
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
