// Mask rule unstructured: a share of a whole tensor's elements, its largest magnitudes.
#include "policies/prune/unstructured.hpp"

#include "emu/stats/pairwise.hpp"
#include "policies/mask_rule.hpp"
#include "policies/prune/kept_bits.hpp"

namespace numemu::policies {

extern const MaskRule mask_unstructured;
const MaskRule mask_unstructured{
    .name = "unstructured",
    .summary = "keeps this share of a tensor's elements, its largest magnitudes",
    .source = "magnitude pruning",
    .span = MaskSpan::tensor,
    .random = false,
    .unbiased = false,
    .options = {"refresh"},
    .prune = [](const MaskPolicy& policy, const RandomSource&,
                const MaskRun& run) { keep_share(policy.share, run); },
    .error =
        [](const MaskPolicy& policy, const float* x, std::int64_t n, double) {
          const Cut cut = find_cut(x, n, kept_of(policy.share, n));
          return stats::pairwise_sum(n, [&](std::int64_t i) {
            return cut.keeps(magnitude_bits(x[i]), i) ? 0.0 : double{x[i]} * x[i];
          });
        }};

}  // namespace numemu::policies
