// 1:2 by vectors: float32 decides wherever its error cannot matter, integers the one pair in 2^20
// that is left, the pairs that overflow and the ones among subnormals.
#include <algorithm>

#include "formats/float_guard.hpp"
#include "formats/simd/philox.hpp"
#include "policies/mask/kernels/mvue.hpp"
#include "policies/mask/unbiased_draws.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "policies/mask/kernels/mvue_pairs.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

std::int64_t prune_pairs(const float*, const std::uint32_t*, std::int64_t, float*) { return 0; }

#else

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
  const FloatVector largest = set(0x1.fffffep127F), tiny = set(0x1p-100F);
  std::int64_t i = 0;
  for (; i + step <= pairs; i += step) {
    const FloatVector v = hn::LoadU(kFloats, x + 2 * i), a = hn::Abs(v);
    const FloatVector sum = hn::Add(a, hn::Shuffle2301(a));
    // The upper 24 bits of u times S: within 2^-24 S of u S, and rounded by at most as much. A
    // difference from a1 that is less than 2^-22 S, or a sum where that is subnormal, decides
    // nothing.
    const auto u = hn::ConvertTo(
        kFloats,
        hn::BitCast(integers, hn::ShiftRight<8>(hn::BitCast(
                                  kWords, hn::PromoteTo(wides, hn::LoadU(narrow, words + i))))));
    const FloatVector unit = hn::Mul(sum, set(0x1p-24F));
    const FloatVector above = hn::Sub(hn::Mul(u, unit), a);  // in even lanes: u S - a1
    const FloatVector margin = hn::Max(hn::Mul(unit, set(4.0F)), hn::Min(sum, tiny));
    const FloatVector decision = hn::DupEven(above);
    const FloatMask sure =
        hn::And(hn::Ge(hn::Abs(decision), hn::DupEven(margin)), hn::Le(sum, largest));
    if (HWY_UNLIKELY(!hn::AllTrue(kFloats, sure))) {
      for (std::int64_t p = i; p < i + step; ++p)
        policies::mvue_pair(x + 2 * p, words[p], y + 2 * p);
      continue;
    }
    const FloatMask kept = hn::Lt(hn::Xor(decision, odd_sign), zero);
    hn::StoreU(hn::IfThenElseZero(kept, hn::Or(sum, hn::And(v, sign))), kFloats, y + 2 * i);
  }
  return i;
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {
namespace {

HWY_EXPORT(prune_pairs);

std::int64_t whole_vectors(const float* x, const std::uint32_t* words, std::int64_t pairs,
                           float* y) {
  return HWY_DYNAMIC_DISPATCH(prune_pairs)(x, words, pairs, y);
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
    for (std::int64_t i = simd::whole_vectors(x, words, pairs, y); i < pairs; ++i)
      mvue_pair(x + 2 * i, words[i], y + 2 * i);
  });
}

}  // namespace numemu::policies
#endif
