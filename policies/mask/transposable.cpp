// Mask rule transposable: the M x M mask with N in every row and column that keeps the largest sum
// of magnitudes.
#include "policies/prune/tile_4x4.hpp"
#include "policies/prune/tile_exact.hpp"
#include "policies/prune/tile_run.hpp"

namespace numemu::policies {

extern const MaskRule mask_transposable;
const MaskRule mask_transposable{
    .name = "transposable",
    .summary = "tiles with N of M in rows and columns, the largest sum of magnitudes",
    .source = "Hubara et al., NeurIPS 2021 (arXiv 2102.08124); here solved exactly",
    .span = MaskSpan::tile,
    .random = false,
    .unbiased = false,
    .options = {"layout", "repair", "refresh"},
    .prune =
        [](const MaskPolicy& policy, const RandomSource& random, const MaskRun& run) {
          if (policy.pattern.group == 4 && policy.pattern.kept == 2)
            return keep_4x4(run.x, run.count, run.y, run.keep);
          prune_tiles<exact_tile>(policy, random, run);
        },
    .error = tile_error<exact_tile>,
    .check = [](const MaskPolicy& policy) { require_tile("transposable", policy.pattern); }};

}  // namespace numemu::policies
