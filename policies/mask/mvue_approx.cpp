// Mask rule mvue-approx: unbiased 2:4 by two draws in turn, at most twice the least variance.
#include "policies/prune/mvue_approx.hpp"

#include "formats/error.hpp"
#include "policies/prune/mvue_variance.hpp"

namespace numemu::policies {

extern const MaskRule mask_mvue_approx;
const MaskRule mask_mvue_approx{
    .name = "mvue-approx",
    .summary = "unbiased 2:4 by two draws, without sorting; below twice the least variance",
    .source = "Chmiel et al., ICLR 2023 (arXiv 2203.10991)",
    .span = MaskSpan::group,
    .random = true,
    .unbiased = true,
    .options = {},
    .prune = [](const MaskPolicy&, const RandomSource& random,
                const MaskRun& run) { mvue_approx(random, run); },
    .error = [](const MaskPolicy& policy, const float* x, std::int64_t,
                double) { return estimator_variance(Estimator::approx, policy.pattern, x); },
    .check =
        [](const MaskPolicy& policy) {
          const unit::Pattern& p = policy.pattern;
          if (p.kept != 2 || p.group != 4 || p.pairwise)
            throw Error("mvue-approx(" + unit::to_string(p) +
                        "): expected 2:4, the only pattern of this rule; mvue takes any");
        }};

}  // namespace numemu::policies
