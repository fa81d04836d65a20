// Counts of NaN and infinite numbers.
#pragma once
#include <cstdint>

namespace numemu::stats {

struct FiniteCounts {
  std::int64_t of = 0, nan = 0, infinite = 0;

  bool all_finite() const { return nan + infinite == 0; }
  FiniteCounts& operator+=(const FiniteCounts& other) {
    of += other.of;
    nan += other.nan;
    infinite += other.infinite;
    return *this;
  }
  friend bool operator==(const FiniteCounts&, const FiniteCounts&) = default;
};

/// Of the n numbers at x.
FiniteCounts count_finite(const float* x, std::int64_t n);

}  // namespace numemu::stats
