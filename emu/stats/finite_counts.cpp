#include "emu/stats/finite_counts.hpp"

#include <bit>

namespace numemu::stats {

FiniteCounts count_finite(const float* x, std::int64_t n) {
  constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  FiniteCounts counts{.of = n};
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x[i]) & kMagnitude;
    counts.nan += magnitude > kInfinity;
    counts.infinite += magnitude == kInfinity;
  }
  return counts;
}

}  // namespace numemu::stats
