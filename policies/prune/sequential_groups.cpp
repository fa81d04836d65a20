// Sequential N:M: the lightest window of each group is pruned.
#include "policies/prune/sequential_groups.hpp"

#include "formats/float_guard.hpp"
#include "policies/prune/kept_bits.hpp"

namespace numemu::policies {
namespace {

double weight(float x) {
  constexpr std::uint32_t kInfinity = 0x7f800000;
  const std::uint32_t bits = magnitude_bits(x);
  if (bits > kInfinity) return 0x1p200;
  if (bits == kInfinity) return 0x1p160;
  return std::bit_cast<float>(bits);
}

}  // namespace

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

}  // namespace numemu::policies
