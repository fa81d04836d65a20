// Mask rule stochastic: gradients below a threshold become +-threshold or zero by chance, without
// bias (Ye et al.; with the lognormal law Chmiel et al., ICLR 2021, arXiv 2006.08173).
//
// In vectors float32 decides, and integers where it is close.
#include "policies/mask/rules/stochastic.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "formats/analysis/magnitude_law.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/simd/philox.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "policies/mask/rules/stochastic.cpp"
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
namespace {

HWY_EXPORT(prune);

/// From here on the product of a random word and the threshold is a normal float32.
constexpr float kSmallestThreshold = 0x1p-90F;

/// prune_stochastic_reference() in every bit, for a finite tau >= kSmallestThreshold.
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

}  // namespace
}  // namespace numemu::policies::simd

namespace numemu::policies {
namespace {

constexpr std::uint32_t kSign = 0x80000000;

struct Parts {
  std::uint64_t significand;
  int exponent;  // of the significand's last bit, less a constant
};

Parts parts_of(std::uint32_t magnitude) {
  const std::uint32_t field = magnitude >> 23, fraction = magnitude & 0x7fffff;
  return {field == 0 ? fraction : fraction | 0x800000, static_cast<int>(std::max(field, 1U))};
}

void store(const MaskRun& run, std::int64_t i, std::uint32_t word, bool kept) {
  if (run.y != nullptr) run.y[i] = std::bit_cast<float>(word);
  if (run.keep != nullptr) run.keep[i] = kept;
}

}  // namespace

float threshold_value(double threshold) {
  const FloatGuard guard;
  const auto tau = static_cast<float>(threshold);
  return tau > 0 && std::isfinite(tau) ? tau : 0.0F;
}

bool is_raised(std::uint32_t random, std::uint32_t magnitude, std::uint32_t tau) {
  const Parts g = parts_of(magnitude), t = parts_of(tau);
  const std::uint64_t product = random * t.significand;  // below 2^56
  const int up = g.exponent + 32 - t.exponent;           // at most 32, as |g| < tau
  if (up >= 0) return product < g.significand << up;
  // product 2^-up < significand, for integers.
  return g.significand != 0 && product <= (g.significand - 1) >> std::min(-up, 63);
}

void prune_stochastic_reference(const RandomSource& random, const MaskRun& run) {
  const auto tau = std::bit_cast<std::uint32_t>(threshold_value(run.threshold));
  for (std::int64_t i = 0; i < run.count; ++i) {
    const auto word = std::bit_cast<std::uint32_t>(run.x[i]);
    const std::uint32_t magnitude = word & ~kSign;
    if (magnitude >= tau) {
      store(run, i, word, true);
    } else {
      const bool kept =
          is_raised(random.bits(run.first + static_cast<std::uint64_t>(i), 32), magnitude, tau);
      store(run, i, kept ? (word & kSign) | tau : 0, kept);
    }
  }
}

void prune_stochastic(const RandomSource& random, const MaskRun& run) {
  const float tau = threshold_value(run.threshold);
  if (tau >= simd::kSmallestThreshold)
    simd::prune_stochastic(random, run, tau);
  else
    prune_stochastic_reference(random, run);
}

double stochastic_error(const float* x, std::int64_t n, double threshold) {
  const FloatGuard guard;
  const double tau = threshold_value(threshold);
  return pairwise_sum(n, [&](std::int64_t i) {
    const double magnitude = std::fabs(static_cast<double>(x[i]));
    return magnitude < tau ? magnitude * (tau - magnitude) : 0.0;
  });
}

void require_share(const MaskPolicy& policy) {
  if (policy.share > 0 && policy.share < 1) return;
  throw Error(std::string(policy.rule != nullptr ? policy.rule->name : "mask") +
              ": expected the share of elements below the threshold between 0 and 1, not " +
              std::to_string(policy.share));
}

extern const MaskRule mask_stochastic = {
    "stochastic",
    "below a threshold: +-threshold with probability |g| / threshold, else 0; P of the non-zero "
    "elements lie below it",
    "Ye et al., accelerating CNN training by pruning activation gradients; Chmiel et al., ICLR "
    "2021",
    MaskSpan::tensor,
    /*random=*/true,
    /*unbiased=*/true,
    {"law", "history", "at"},
    [](const MaskPolicy&, const RandomSource& random, const MaskRun& run) {
      prune_stochastic(random, run);
    },
    [](const MaskPolicy&, const float* x, std::int64_t n, double threshold) {
      return stochastic_error(x, n, threshold);
    },
    [](const MaskPolicy& policy, const float* x, std::int64_t n) {
      return threshold_below(fit_law(policy.law, x, n), policy.share);
    },
    require_share};

}  // namespace numemu::policies
#endif
