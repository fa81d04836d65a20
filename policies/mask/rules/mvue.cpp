// Mask rule mvue: the unbiased estimate of least variance with N of each group of M. Water-filling
// in float64, sampling in integers.
#include "policies/mask/kernels/mvue.hpp"

#include "formats/float_guard.hpp"
#include "formats/simd/philox.hpp"
#include "policies/mask/mvue_variance.hpp"
#include "policies/mask/unbiased_draws.hpp"

namespace numemu::policies {
namespace {

constexpr std::int64_t kOne = std::int64_t{1} << 32;  // a probability of 1

/// What water-filling decides, and what it leaves to chance. Bit i: element i.
struct Filling {
  std::uint32_t certain = 0, drawn = 0;  ///< of probability 1; in (0, 1)
  int kept = 0;                          ///< N'
  double sum = 0;                        ///< S'
};

/// kGroup: M as a compile-time constant, else 0.
template <int kGroup>
Filling fill(const unit::Sparsity& pattern, const double* a) {
  const int group = kGroup != 0 ? kGroup : pattern.group;
  Filling f;
  f.kept = pattern.kept;
  for (int i = 0; i < group; ++i) {
    f.sum += a[i];
    f.drawn |= (a[i] > 0 ? 1U : 0U) << i;
  }
  while (f.drawn != 0) {
    std::uint32_t large = 0;
    for (int i = 0; i < group; ++i) large |= (f.kept * a[i] >= f.sum ? 1U : 0U) << i;
    large &= f.drawn;
    if (large == 0) break;
    f.certain |= large;
    f.drawn &= ~large;
    f.kept -= std::popcount(large);
    if (f.kept <= 0) f.drawn = 0;
    f.sum = 0;
    for (int i = 0; i < group; ++i) f.sum += (f.drawn >> i & 1U) != 0 ? a[i] : 0.0;
  }
  return f;
}

/// The drawn elements that the points r, r + 1... meet.
template <int kGroup>
std::uint32_t sample(const unit::Sparsity& pattern, const double* a, const Filling& f,
                     std::uint32_t r) {
  const int group = kGroup != 0 ? kGroup : pattern.group;
  const std::int64_t total = f.kept * kOne;
  const double unit = static_cast<double>(total) / f.sum;
  std::int64_t point = r, before = 0, left = std::popcount(f.drawn);
  std::uint32_t chosen = 0;
  double cumulated = 0;
  for (int i = 0; i < group; ++i) {
    if ((f.drawn >> i & 1U) == 0) continue;
    cumulated += a[i];
    --left;
    // Rounding must neither give a step above 1 nor leave one for the end.
    const std::int64_t least = std::max(before, total - left * kOne);
    const std::int64_t most = std::min(before + kOne, total);
    const auto nearest = static_cast<std::int64_t>(cumulated * unit + 0.5);
    before = std::min(std::max(nearest, least), most);
    const bool meets = point < before;
    chosen |= (meets ? 1U : 0U) << i;
    point += meets ? kOne : 0;
  }
  return chosen;
}

template <int kGroup>
void prune(const unit::Sparsity& pattern, const float* x, std::uint32_t r, float* y) {
  const int group = kGroup != 0 ? kGroup : pattern.group;
  if (std::isinf(group_amax(x, group))) return write_nan_group(pattern.kept, group, y);
  double a[unit::kMostGroup];
  for (int i = 0; i < group; ++i) a[i] = std::fabs(x[i]);
  const Filling f = fill<kGroup>(pattern, a);
  std::uint32_t chosen = 0;
  float share = 0;
  if (f.drawn != 0) {
    chosen = sample<kGroup>(pattern, a, f, r);
    share = static_cast<float>(f.sum / f.kept);
  }
  for (int i = 0; i < group; ++i) {
    const float drawn = (chosen >> i & 1U) != 0 ? signed_like(share, x[i]) : 0.0F;
    y[i] = (f.certain >> i & 1U) != 0 ? x[i] : drawn;
  }
}

template <int kGroup>
void prune_all(const unit::Sparsity& pattern, const RandomSource& random, const MaskRun& run) {
  for_each_batch(
      run, pattern.group, [&](const float* x, std::uint64_t first, std::int64_t groups, float* y) {
        std::uint32_t words[kUnbiasedBatch];
        simd::fill_random(random, 32, first, groups, words);
        const bool quads = pattern.kept == 2 && pattern.group == 4;
        for (std::int64_t g = quads ? mvue_quads(x, words, groups, y) : 0; g < groups; ++g)
          prune<kGroup>(pattern, x + g * pattern.group, words[g], y + g * pattern.group);
      });
}

bool is_pair(const MaskPolicy& policy) {
  return policy.pattern.kept == 1 && policy.pattern.group == 2;
}

}  // namespace

void mvue_group(const unit::Sparsity& pattern, const float* x, std::uint32_t r, float* y) {
  prune<0>(pattern, x, r, y);
}

void mvue_groups_reference(const unit::Sparsity& pattern, const RandomSource& random,
                           const MaskRun& run) {
  const FloatGuard guard;
  for_each_batch(
      run, pattern.group, [&](const float* x, std::uint64_t first, std::int64_t groups, float* y) {
        for (std::int64_t g = 0; g < groups; ++g)
          mvue_group(pattern, x + g * pattern.group,
                     random.bits(first + static_cast<std::uint64_t>(g), 32), y + g * pattern.group);
      });
}

void mvue_groups(const unit::Sparsity& pattern, const RandomSource& random, const MaskRun& run) {
  const FloatGuard guard;
  switch (pattern.group) {
    case 4:
      return prune_all<4>(pattern, random, run);
    case 8:
      return prune_all<8>(pattern, random, run);
    case 16:
      return prune_all<16>(pattern, random, run);
    default:
      return prune_all<0>(pattern, random, run);
  }
}

extern const MaskRule mask_mvue{
    .name = "mvue",
    .summary = "unbiased with the least variance: likely as |x|, N of each group of M",
    .source = "Chmiel et al., ICLR 2023 (arXiv 2203.10991)",
    .span = MaskSpan::group,
    .random = true,
    .unbiased = true,
    .options = {},
    .prune =
        [](const MaskPolicy& policy, const RandomSource& random, const MaskRun& run) {
          if (is_pair(policy)) return mvue_pairs(random, run);
          mvue_groups(policy.pattern, random, run);
        },
    .error = [](const MaskPolicy& policy, const float* x, std::int64_t,
                double) { return estimator_variance(Estimator::exact, policy.pattern, x); },
    .check = [](const MaskPolicy& policy) { require_single_elements("mvue", policy.pattern); }};

}  // namespace numemu::policies
