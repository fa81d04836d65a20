// The scaled form of the random masks.
#include "policies/prune/random_unbiased.hpp"

#include "formats/float_guard.hpp"
#include "policies/prune/random_groups.hpp"
#include "policies/prune/unbiased_draws.hpp"

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

}  // namespace numemu::policies
