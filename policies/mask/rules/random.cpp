// Mask rule random: N positions of each group of M, drawn without looking at the elements.
#include "policies/mask/rules/random.hpp"

#include <algorithm>
#include <array>

#include "formats/simd/philox.hpp"
#include "policies/mask/kept_bits.hpp"

namespace numemu::policies {
namespace {

using Triangle = std::array<std::array<std::uint32_t, unit::kMostGroup + 2>, unit::kMostGroup + 1>;

// kChoose[n][k + 1] = C(n, k), 0 for k < 0 and k > n.
constexpr Triangle kChoose = [] {
  Triangle t{};
  for (std::size_t n = 0; n < t.size(); ++n) {
    t[n][1] = 1;
    for (std::size_t k = 1; k <= n; ++k) t[n][k + 1] = t[n - 1][k] + t[n - 1][k + 1];
  }
  return t;
}();

std::uint32_t masks(const unit::Sparsity& pattern) {
  const auto group = static_cast<std::size_t>(pattern.group);
  return kChoose[group][static_cast<std::size_t>(pattern.kept) + 1];
}

std::uint32_t scaled(std::uint32_t random, std::uint32_t count) {
  return static_cast<std::uint32_t>(std::uint64_t{random} * count >> 32);
}

}  // namespace

std::uint32_t mask_of_index(const unit::Sparsity& pattern, std::uint32_t index) {
  std::uint32_t mask = 0;
  auto left = static_cast<std::size_t>(pattern.kept);
  for (int i = 0; i < pattern.group; ++i) {
    // So many masks that agree so far keep position i, and they come first. No branch: what a draw
    // keeps cannot be predicted.
    const auto behind = static_cast<std::size_t>(pattern.group - 1 - i);
    const std::uint32_t keeping = kChoose[behind][left], keeps = index < keeping ? 1 : 0;
    mask |= keeps << i;
    index -= keeping & (keeps - 1U);
    left -= keeps;
  }
  return mask;
}

void keep_random_reference(const unit::Sparsity& pattern, const RandomSource& random,
                           const MaskRun& run) {
  for (std::int64_t g = 0; g < run.count; ++g) {
    const std::uint32_t r = random.bits(run.first + static_cast<std::uint64_t>(g), 32);
    write_group(run, g, pattern.group, mask_of_index(pattern, scaled(r, masks(pattern))));
  }
}

void keep_random(const unit::Sparsity& pattern, const RandomSource& random, const MaskRun& run) {
  constexpr std::int64_t kBatch = 256;
  std::uint32_t words[kBatch];
  const std::uint32_t count = masks(pattern);
  for (std::int64_t first = 0; first < run.count; first += kBatch) {
    const std::int64_t size = std::min(kBatch, run.count - first);
    simd::fill_random(random, 32, run.first + static_cast<std::uint64_t>(first), size, words);
    for (std::int64_t g = 0; g < size; ++g)
      write_group(run, first + g, pattern.group, mask_of_index(pattern, scaled(words[g], count)));
  }
}

extern const MaskRule mask_random{
    .name = "random",
    .summary = "N positions of each group drawn at random, kept as they are; static for weights",
    .source = "the contrast that magnitude pruning is measured against",
    .span = MaskSpan::group,
    .random = true,
    .unbiased = false,
    .options = {"repair"},
    .prune = [](const MaskPolicy& policy, const RandomSource& random,
                const MaskRun& run) { keep_random(policy.pattern, random, run); },
    .error =
        [](const MaskPolicy& policy, const float* x, std::int64_t, double) {
          const int group = policy.pattern.group, pruned = group - policy.pattern.kept;
          return pruned_squares(x, group, 0) * pruned / group;
        },
    .check = [](const MaskPolicy& policy) { require_single_elements("random", policy.pattern); }};

}  // namespace numemu::policies
