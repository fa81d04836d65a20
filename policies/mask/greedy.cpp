// Mask rule greedy: the N largest magnitudes of each group of M.
#include "policies/mask_rule.hpp"
#include "policies/prune/greedy_groups.hpp"
#include "policies/prune/kept_bits.hpp"

namespace numemu::policies {

extern const MaskRule mask_greedy;
const MaskRule mask_greedy{
    .name = "greedy",
    .summary = "the N largest magnitudes of each group; the least squared error, biased",
    .source = "magnitude pruning; Hubara et al., NeurIPS 2021 (arXiv 2102.08124)",
    .span = MaskSpan::group,
    .random = false,
    .unbiased = false,
    .options = {"repair", "refresh"},
    .prune = [](const MaskPolicy& policy, const RandomSource&,
                const MaskRun& run) { keep_largest(policy.pattern, run); },
    .error =
        [](const MaskPolicy& policy, const float* x, std::int64_t, double) {
          return pruned_squares(x, policy.pattern.group, largest_of_group(policy.pattern, x));
        },
    .check = [](const MaskPolicy& policy) { require_single_elements("greedy", policy.pattern); }};

}  // namespace numemu::policies
