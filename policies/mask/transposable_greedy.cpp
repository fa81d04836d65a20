// Mask rule transposable-greedy: the heaviest elements of a tile first, then rows and columns
// filled up.
#include "policies/prune/tile_greedy.hpp"
#include "policies/prune/tile_run.hpp"

namespace numemu::policies {
namespace {

TileMask choose(const MaskPolicy& policy, const float* x) {
  return keep_heaviest_filled(x, policy.pattern.group, policy.pattern.kept);
}

}  // namespace

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
    .prune =
        [](const MaskPolicy& policy, const RandomSource&, const MaskRun& run) {
          write_tiles(policy, run, [&](const float* x) { return choose(policy, x); });
        },
    .error = [](const MaskPolicy& policy, const float* x, std::int64_t,
                double) { return pruned_squares(choose(policy, x), x); },
    .check = [](const MaskPolicy& policy) { require_tile("transposable-greedy", policy.pattern); }};

}  // namespace numemu::policies
