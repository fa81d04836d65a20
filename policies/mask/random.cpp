// Mask rule random: N positions of each group of M, drawn without looking at the elements.
#include "policies/mask_rule.hpp"
#include "policies/prune/kept_bits.hpp"
#include "policies/prune/random_groups.hpp"

namespace numemu::policies {

extern const MaskRule mask_random;
const MaskRule mask_random{
    .name = "random",
    .summary = "N positions of each group drawn at random, kept as they are; static for weights",
    .source = "the contrast that magnitude pruning is measured against",
    .span = MaskSpan::group,
    .random = true,
    .unbiased = false,
    .options = {"repair"},
    .prune = [](const MaskPolicy& policy, const RandomSource& random,
                const MaskRun& run) { keep_random(policy.pattern, random, run); },
    .error =
        [](const MaskPolicy& policy, const float* x, std::int64_t, double) {
          const int group = policy.pattern.group, pruned = group - policy.pattern.kept;
          return pruned_squares(x, group, 0) * pruned / group;
        },
    .check = [](const MaskPolicy& policy) { require_single_elements("random", policy.pattern); }};

}  // namespace numemu::policies
