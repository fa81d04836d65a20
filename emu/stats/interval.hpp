// Confidence intervals, all at 95 %.
#pragma once
#include <cstdint>

namespace numemu::stats {

/// Standard errors from the middle to either end: the 97.5 % point of the standard normal law.
inline constexpr double kNormal95 = 1.959963984540054;

struct Interval {
  double low, high;
};

/// Wilson's score interval of a proportion (Wilson 1927); [0, 1] for n = 0. 0 <= successes <= n.
Interval wilson(std::int64_t successes, std::int64_t n);
/// Interval of the difference p1 - p2 of two classifiers on the same n images, from the discordant
/// counts (only1 right where the other is wrong, only2 the converse): Wald with Agresti-Min's +2
/// adjustment, half a count more in each of the four cells (Agresti and Min 2005), clipped to [-1,
/// 1].
Interval paired_difference(std::int64_t only1, std::int64_t only2, std::int64_t n);

}  // namespace numemu::stats
