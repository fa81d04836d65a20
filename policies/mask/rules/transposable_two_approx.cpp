// Mask rule transposable-2approx: the lightest elements of a tile are pruned first, at most twice
// the sum that has to be.
#include "policies/mask/rules/transposable_greedy.hpp"

namespace numemu::policies {

extern const MaskRule mask_transposable_two_approx{
    .name = "transposable-2approx",
    .summary = "tiles with at most N of M in rows and columns; prunes at most twice the least sum",
    .source = "Hubara et al., NeurIPS 2021 (arXiv 2102.08124), algorithm 1",
    .span = MaskSpan::tile,
    .random = false,
    .unbiased = false,
    .options = {"layout", "repair", "refresh"},
    .prune = prune_tiles<prune_lightest>,
    .error = tile_error<prune_lightest>,
    .check = [](const MaskPolicy& policy) {
      require_tile("transposable-2approx", policy.pattern);
    }};

}  // namespace numemu::policies
