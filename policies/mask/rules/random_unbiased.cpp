// Mask rule random-unbiased: a uniform mask, and what it keeps scaled by M / N.
#include "formats/float_guard.hpp"
#include "policies/mask/mvue_variance.hpp"
#include "policies/mask/rules/random.hpp"
#include "policies/mask/unbiased_draws.hpp"

namespace numemu::policies {

void random_unbiased(const unit::Sparsity& pattern, const RandomSource& random,
                     const MaskRun& run) {
  const FloatGuard guard;
  const int group = pattern.group;
  for_each_batch(
      run, group, [&](const float* x, std::uint64_t first, std::int64_t groups, float* y) {
        bool special[kUnbiasedBatch];
        for (std::int64_t g = 0; g < groups; ++g)
          special[g] = std::isinf(group_amax(x + g * group, group));
        keep_random(pattern, random, MaskRun{x, y, nullptr, groups, first});
        for (std::int64_t i = 0; i < groups * group; ++i)
          y[i] = static_cast<float>(double{y[i]} * group / pattern.kept) + 0.0F;  // -0 becomes +0
        for (std::int64_t g = 0; g < groups; ++g) {
          if (special[g]) write_nan_group(pattern.kept, group, y + g * group);
        }
      });
}

extern const MaskRule mask_random_unbiased{
    .name = "random-unbiased",
    .summary = "N of each group of M at random, times M / N: unbiased, blind to magnitudes",
    .source = "the contrast to mvue; Chmiel et al., ICLR 2023 (arXiv 2203.10991)",
    .span = MaskSpan::group,
    .random = true,
    .unbiased = true,
    .options = {},
    .prune = [](const MaskPolicy& policy, const RandomSource& random,
                const MaskRun& run) { random_unbiased(policy.pattern, random, run); },
    .error = [](const MaskPolicy& policy, const float* x, std::int64_t,
                double) { return estimator_variance(Estimator::random, policy.pattern, x); },
    .check =
        [](const MaskPolicy& policy) {
          require_single_elements("random-unbiased", policy.pattern);
        }};

}  // namespace numemu::policies
