// Mask rule sequential: each group of M loses the M - N neighbours with the smallest sum of
// magnitudes.
#include "formats/float_guard.hpp"
#include "policies/mask/kept_bits.hpp"
#include "policies/mask/mask_rule.hpp"

namespace numemu::policies {
namespace {

double weight(float x) {
  constexpr std::uint32_t kInfinity = 0x7f800000;
  const std::uint32_t bits = magnitude_bits(x);
  if (bits > kInfinity) return 0x1p200;
  if (bits == kInfinity) return 0x1p160;
  return std::bit_cast<float>(bits);
}

/// Bit i: position i is kept. Of the N + 1 windows of M - N neighbours the one with the smallest
/// sum of magnitudes is pruned; of equal ones the last, so that the earliest positions are kept.
///
/// Sums are of float64, ascending. An infinity counts as 2^160 in them and a NaN as 2^200: each is
/// more than all that ranks below it in a group, and beside it nothing below counts.
std::uint32_t sequential_of_group(const unit::Sparsity& pattern, const float* x) {
  double weights[unit::kMostGroup];
  for (int i = 0; i < pattern.group; ++i) weights[i] = weight(x[i]);
  const int length = pattern.group - pattern.kept;
  int lightest = 0;
  double least = 0;
  for (int start = 0; start <= pattern.kept; ++start) {
    double sum = 0;
    for (int i = start; i < start + length; ++i) sum += weights[i];
    if (start > 0 && sum > least) continue;
    lightest = start;
    least = sum;
  }
  const std::uint32_t window = ((1U << length) - 1) << lightest;
  return ((1U << pattern.group) - 1) & ~window;
}

void keep_sequential(const unit::Sparsity& pattern, const MaskRun& run) {
  const FloatGuard guard;
  for (std::int64_t g = 0; g < run.count; ++g)
    write_group(run, g, pattern.group, sequential_of_group(pattern, run.x + g * pattern.group));
}

}  // namespace

extern const MaskRule mask_sequential{
    .name = "sequential",
    .summary = "each group loses M - N neighbours, those with the smallest sum of magnitudes",
    .source = "the least diverse mask of Hubara et al., NeurIPS 2021 (arXiv 2102.08124)",
    .span = MaskSpan::group,
    .random = false,
    .unbiased = false,
    .options = {"repair", "refresh"},
    .prune = [](const MaskPolicy& policy, const RandomSource&,
                const MaskRun& run) { keep_sequential(policy.pattern, run); },
    .error =
        [](const MaskPolicy& policy, const float* x, std::int64_t, double) {
          return pruned_squares(x, policy.pattern.group, sequential_of_group(policy.pattern, x));
        },
    .check =
        [](const MaskPolicy& policy) { require_single_elements("sequential", policy.pattern); }};

}  // namespace numemu::policies
