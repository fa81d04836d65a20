// Mask rule random-unbiased: a uniform mask, and what it keeps scaled by M / N.
#include "policies/prune/random_unbiased.hpp"

#include "policies/prune/kept_bits.hpp"
#include "policies/prune/mvue_variance.hpp"

namespace numemu::policies {

extern const MaskRule mask_random_unbiased;
const MaskRule mask_random_unbiased{
    .name = "random-unbiased",
    .summary = "N of each group of M at random, times M / N: unbiased, blind to magnitudes",
    .source = "the contrast to mvue; Chmiel et al., ICLR 2023 (arXiv 2203.10991)",
    .span = MaskSpan::group,
    .random = true,
    .unbiased = true,
    .options = {},
    .prune = [](const MaskPolicy& policy, const RandomSource& random,
                const MaskRun& run) { random_unbiased(policy.pattern, random, run); },
    .error = [](const MaskPolicy& policy, const float* x, std::int64_t,
                double) { return estimator_variance(Estimator::random, policy.pattern, x); },
    .check =
        [](const MaskPolicy& policy) {
          require_single_elements("random-unbiased", policy.pattern);
        }};

}  // namespace numemu::policies
