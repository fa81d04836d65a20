// Mask rule transposable-greedy: the heaviest elements of a tile first, then rows and columns
// filled up.
#include "policies/prune/tile_greedy.hpp"
#include "policies/prune/tile_run.hpp"

namespace numemu::policies {

extern const MaskRule mask_transposable_greedy;
const MaskRule mask_transposable_greedy{
    .name = "transposable-greedy",
    .summary =
        "tiles with at most N of M in rows and columns, the heaviest first; at least half "
        "the best sum",
    .source = "greedy b-matching; Hubara et al., NeurIPS 2021 (arXiv 2102.08124)",
    .span = MaskSpan::tile,
    .random = false,
    .unbiased = false,
    .options = {"layout", "repair", "refresh"},
    .prune = prune_tiles<keep_heaviest_filled>,
    .error = tile_error<keep_heaviest_filled>,
    .check = [](const MaskPolicy& policy) { require_tile("transposable-greedy", policy.pattern); }};

}  // namespace numemu::policies
