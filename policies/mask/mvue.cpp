// Mask rule mvue: the unbiased estimate of least variance with N of each group of M.
#include "policies/prune/kept_bits.hpp"
#include "policies/prune/mvue_groups.hpp"
#include "policies/prune/mvue_pairs.hpp"
#include "policies/prune/mvue_variance.hpp"

namespace numemu::policies {
namespace {

bool is_pair(const MaskPolicy& policy) {
  return policy.pattern.kept == 1 && policy.pattern.group == 2;
}

}  // namespace

extern const MaskRule mask_mvue;
const MaskRule mask_mvue{
    .name = "mvue",
    .summary = "unbiased with the least variance: likely as |x|, N of each group of M",
    .source = "Chmiel et al., ICLR 2023 (arXiv 2203.10991)",
    .span = MaskSpan::group,
    .random = true,
    .unbiased = true,
    .options = {},
    .prune =
        [](const MaskPolicy& policy, const RandomSource& random, const MaskRun& run) {
          if (is_pair(policy)) return mvue_pairs(random, run);
          mvue_groups(policy.pattern, random, run);
        },
    .error = [](const MaskPolicy& policy, const float* x, std::int64_t,
                double) { return estimator_variance(Estimator::exact, policy.pattern, x); },
    .check = [](const MaskPolicy& policy) { require_single_elements("mvue", policy.pattern); }};

}  // namespace numemu::policies
