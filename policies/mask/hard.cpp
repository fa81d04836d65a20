// Mask rule hard: gradients below the same threshold become zero, the biased contrast to
// stochastic.
#include "policies/prune/threshold_law.hpp"
#include "policies/prune/threshold_prune.hpp"

namespace numemu::policies {

extern const MaskRule mask_hard;
const MaskRule mask_hard = {
    "hard",
    "below a threshold: 0; P of the non-zero elements lie below it",
    "the contrast to stochastic pruning; specs/sparsity.md",
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
