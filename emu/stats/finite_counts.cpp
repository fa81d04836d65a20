// Bits are compared, a block at a time.
#include "emu/stats/finite_counts.hpp"

#include <bit>

namespace numemu::stats {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;

void count_each(const float* x, std::int64_t n, FiniteCounts& counts) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x[i]) & kMagnitude;
    counts.nan += magnitude > kInfinity;
    counts.infinite += magnitude == kInfinity;
  }
}

}  // namespace

FiniteCounts count_finite(const float* x, std::int64_t n) {
  // Nearly always every number is finite, and blocks of a fixed size are compared as vectors.
  constexpr std::int64_t kBlock = 64;
  FiniteCounts counts{.of = n};
  std::int64_t first = 0;
  for (; first + kBlock <= n; first += kBlock) {
    std::uint32_t not_finite = 0;
    for (std::int64_t i = 0; i < kBlock; ++i)
      not_finite |= -static_cast<std::uint32_t>(
          (std::bit_cast<std::uint32_t>(x[first + i]) & kInfinity) == kInfinity);
    if (not_finite != 0) count_each(x + first, kBlock, counts);
  }
  count_each(x + first, n - first, counts);
  return counts;
}

}  // namespace numemu::stats
