// Cold: a negligible share of any run (docs/build.md).
#include "policies/mask/prune.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "policies/mask/weight_mask.hpp"

namespace numemu::policies {
namespace {

double threshold(const MaskPolicy& mask, const Pruning& pruning, const float* x, std::int64_t n) {
  if (mask.rule->threshold == nullptr) return 0;
  const auto own = [&] { return mask.rule->threshold(mask, x, n); };
  if (pruning.thresholds == nullptr) return own();
  return pruning.thresholds->of(pruning.repetition, n, mask.history, own);
}

}  // namespace

Pruning pruning_of(std::uint64_t seed, const net::Step& step, const net::Product& product,
                   net::Role role) {
  Pruning pruning{.seed = seed,
                  .phase = step.phase,
                  .layer = product.layer,
                  .role = role,
                  .first_sample = step.first_sample()};
  if (step.phase == net::Phase::training) {
    pruning.step = step.index;
    pruning.repetition = product.repetition_in(step);
  }
  return pruning;
}

void prune(const MaskPolicy& mask, const Pruning& pruning, const MaskLayout& layout,
           std::int64_t samples, const float* x, float* y) {
  const std::string times = pruning.repetition == 0 ? "" : fmt::format(".{}", pruning.repetition);
  const RandomSource random = mask_source(
      pruning.seed, fmt::format("{}/{}/{}{}/{}", pruning.layer, net::to_string(pruning.role),
                                pruning.step, times, pruning.axis));
  const bool training = pruning.phase == net::Phase::training;
  std::uint64_t first = 0;
  if (!training && samples > 0) {
    first = static_cast<std::uint64_t>(pruning.first_sample) *
            (decision_count(mask, layout) / static_cast<std::uint64_t>(samples));
  }
  if (mask.rule->span != MaskSpan::tensor || training) {
    mask_tensor(mask, random, layout, first, threshold(mask, pruning, x, layout.size()), x, y,
                nullptr);
    return;
  }
  // In inference a sample's result does not depend on its neighbours.
  const std::int64_t each = layout.size() / std::max<std::int64_t>(1, samples);
  for (std::int64_t s = 0; s < samples; ++s) {
    const float* const from = x + s * each;
    mask_tensor(mask, random, {.width = each}, first + static_cast<std::uint64_t>(s * each),
                threshold(mask, pruning, from, each), from, y + s * each, nullptr);
  }
}

}  // namespace numemu::policies
