// Mask rule transposable-2approx: the lightest elements of a tile are pruned first, at most twice
// the sum that has to be.
#include "policies/prune/tile_greedy.hpp"
#include "policies/prune/tile_run.hpp"

namespace numemu::policies {
namespace {

TileMask choose(const MaskPolicy& policy, const float* x) {
  return prune_lightest(x, policy.pattern.group, policy.pattern.kept);
}

}  // namespace

extern const MaskRule mask_transposable_two_approx;
const MaskRule mask_transposable_two_approx{
    .name = "transposable-2approx",
    .summary = "tiles with at most N of M in rows and columns; prunes at most twice the least sum",
    .source = "Hubara et al., NeurIPS 2021 (arXiv 2102.08124), algorithm 1",
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
    .check =
        [](const MaskPolicy& policy) { require_tile("transposable-2approx", policy.pattern); }};

}  // namespace numemu::policies
