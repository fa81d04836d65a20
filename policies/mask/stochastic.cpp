// Mask rule stochastic: gradients below a threshold become +-threshold or zero by chance, without
// bias (Ye et al.; with the lognormal law Chmiel et al., ICLR 2021, arXiv 2006.08173).
#include "policies/prune/threshold_law.hpp"
#include "policies/prune/threshold_prune.hpp"

namespace numemu::policies {

extern const MaskRule mask_stochastic;
const MaskRule mask_stochastic = {
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
