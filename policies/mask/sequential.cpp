// Mask rule sequential: each group of M loses the M - N neighbours with the smallest sum of
// magnitudes.
#include "policies/mask_rule.hpp"
#include "policies/prune/kept_bits.hpp"
#include "policies/prune/sequential_groups.hpp"

namespace numemu::policies {

extern const MaskRule mask_sequential;
const MaskRule mask_sequential{
    .name = "sequential",
    .summary = "each group loses M - N neighbours, those with the smallest sum of magnitudes",
    .source = "the least diverse mask of Hubara et al., NeurIPS 2021 (arXiv 2102.08124)",
    .span = MaskSpan::group,
    .random = false,
    .unbiased = false,
    .options = {"repair", "refresh"},
    .prune = [](const MaskPolicy& policy, const RandomSource&,
                const MaskRun& run) { keep_sequential(policy.pattern, run); },
    .error =
        [](const MaskPolicy& policy, const float* x, std::int64_t, double) {
          return pruned_squares(x, policy.pattern.group, sequential_of_group(policy.pattern, x));
        },
    .check =
        [](const MaskPolicy& policy) { require_single_elements("sequential", policy.pattern); }};

}  // namespace numemu::policies
