// Mask rule hard: gradients below the same threshold become zero, the biased contrast to
// stochastic.
#include <bit>
#include <cmath>

#include "formats/analysis/magnitude_law.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/mask/rules/stochastic.hpp"

namespace numemu::policies {

void prune_hard(const MaskRun& run) {
  // Magnitudes order as their bits do, NaN above infinity; `keep` first, as y may be x.
  constexpr std::int32_t kMagnitude = 0x7fffffff;
  const auto tau = std::bit_cast<std::int32_t>(threshold_value(run.threshold));
  if (run.keep != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < run.count; ++i)
      run.keep[i] = (std::bit_cast<std::int32_t>(run.x[i]) & kMagnitude) >= tau;
  }
  if (run.y != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < run.count; ++i) {
      const auto word = std::bit_cast<std::int32_t>(run.x[i]);
      run.y[i] = std::bit_cast<float>((word & kMagnitude) >= tau ? word : 0);
    }
  }
}

double hard_error(const float* x, std::int64_t n, double threshold) {
  const FloatGuard guard;
  const double tau = threshold_value(threshold);
  return pairwise_sum(n, [&](std::int64_t i) {
    const double magnitude = std::fabs(static_cast<double>(x[i]));
    return magnitude < tau ? magnitude * magnitude : 0.0;
  });
}

extern const MaskRule mask_hard = {
    "hard",
    "below a threshold: 0; P of the non-zero elements lie below it",
    "Ye et al., accelerating CNN training by pruning activation gradients: the contrast there",
    MaskSpan::tensor,
    /*random=*/false,
    /*unbiased=*/false,
    {"law", "history", "at"},
    [](const MaskPolicy&, const RandomSource&, const MaskRun& run) { prune_hard(run); },
    [](const MaskPolicy&, const float* x, std::int64_t n, double threshold) {
      return hard_error(x, n, threshold);
    },
    [](const MaskPolicy& policy, const float* x, std::int64_t n) {
      return threshold_below(fit_law(policy.law, x, n), policy.share);
    },
    require_share};

}  // namespace numemu::policies
