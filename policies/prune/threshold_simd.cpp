// Stochastic pruning below a threshold in vectors: float32 decides, integers where it is close.
#include "policies/prune/threshold_simd.hpp"

#include <algorithm>
#include <bit>

#include "formats/float_guard.hpp"
#include "formats/simd/philox.hpp"
#include "policies/prune/threshold_prune.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "policies/prune/threshold_simd.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::policies::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// What an element becomes, by the reference.
HWY_INLINE float pruned(float x, std::uint32_t random, float tau) {
  const auto word = std::bit_cast<std::uint32_t>(x), bound = std::bit_cast<std::uint32_t>(tau);
  const std::uint32_t sign = word & 0x80000000U, magnitude = word ^ sign;
  if (magnitude >= bound) return x;
  return std::bit_cast<float>(is_raised(random, magnitude, bound) ? sign | bound : 0);
}

#if HWY_TARGET == HWY_SCALAR

void prune(const float* x, const std::uint32_t* random, std::int64_t n, float tau, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = pruned(x[i], random[i], tau);
}

#else

using namespace numemu::simd::HWY_NAMESPACE;
using Integers = hn::RebindToSigned<Floats>;

// y may be x. r 2^-32 tau is rounded twice, to 2 ulp in all; bits of positive floats are
// as far apart as the floats are in ulp. What lies closer is left to integers: one element in 2^21.
void prune(const float* x, const std::uint32_t* random, std::int64_t n, float tau, float* y) {
  constexpr Integers d;
  constexpr std::int32_t kClose = 4;
  const FloatVector factor = set(tau * 0x1p-32F);
  const WordVector tau_words = bits_of(set(tau)), sign_bit = set(0x80000000U);
  const auto close = hn::Set(d, kClose), away = hn::Set(d, -kClose - 1);
  std::int64_t i = 0;
  for (; i + lanes() <= n; i += lanes()) {
    const WordVector words = bits_of(hn::LoadU(kFloats, x + i)),
                     draws = hn::LoadU(kWords, random + i);
    const WordVector sign = hn::And(words, sign_bit), magnitude = hn::Xor(words, sign);
    const WordVector bound = bits_of(hn::Mul(hn::ConvertTo(kFloats, draws), factor));
    const auto below = hn::Lt(hn::BitCast(d, magnitude), hn::BitCast(d, tau_words));
    const auto distance = hn::Sub(hn::BitCast(d, magnitude), hn::BitCast(d, bound));
    const auto kept = hn::Gt(distance, close);
    const auto raised = hn::IfThenElseZero(kept, hn::BitCast(d, hn::Or(sign, tau_words)));
    const auto result = hn::IfThenElse(below, raised, hn::BitCast(d, words));
    const auto unsure = hn::And(below, hn::AndNot(kept, hn::Gt(distance, away)));
    if (HWY_LIKELY(hn::AllFalse(d, unsure))) {
      hn::StoreU(hn::BitCast(kFloats, result), kFloats, y + i);
      continue;
    }
    for (std::int64_t k = i; k < i + lanes(); ++k) y[k] = pruned(x[k], random[k], tau);
  }
  for (; i < n; ++i) y[i] = pruned(x[i], random[i], tau);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace numemu::policies::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::policies::simd {

HWY_EXPORT(prune);

void prune_stochastic(const RandomSource& random, const MaskRun& run, float tau) {
  const FloatGuard guard;
  constexpr std::int64_t kChunk = 1024;  // its random words stay in the first cache
  alignas(64) std::uint32_t words[kChunk];
  alignas(64) float values[kChunk];  // where only `keep` is written
  for (std::int64_t i = 0; i < run.count; i += kChunk) {
    const std::int64_t n = std::min(kChunk, run.count - i);
    numemu::simd::fill_random(random, 32, run.first + static_cast<std::uint64_t>(i), n, words);
    float* const y = run.y != nullptr ? run.y + i : values;
    HWY_DYNAMIC_DISPATCH(prune)(run.x + i, words, n, tau, y);
    if (run.keep == nullptr) continue;
      // An element kept is at least tau in magnitude, one pruned is +0.
#pragma omp simd
    for (std::int64_t k = 0; k < n; ++k) run.keep[i + k] = std::bit_cast<std::int32_t>(y[k]) != 0;
  }
}

}  // namespace numemu::policies::simd
#endif
