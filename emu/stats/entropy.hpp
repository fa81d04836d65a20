// Entropy of a discrete law from how often each outcome was seen.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/stats/interval.hpp"

namespace numemu::stats {

/// Estimates in bits from n independent draws.
struct Entropy {
  std::int64_t n = 0;         ///< draws
  std::int64_t distinct = 0;  ///< outcomes seen
  double plug_in = 0;         ///< of the frequencies; never above log2 n
  double corrected = 0;       ///< plug_in + (distinct - 1) / (2 n ln 2) (Miller and Madow 1955)
  /// 95 % about `corrected`, from Harris's variance of the plug-in estimate (1975):
  /// (sum p log2^2 p - H^2) / n + (distinct - 1) / (2 n^2 ln^2 2). It holds where most outcomes
  /// were seen more than once: look at `coverage`.
  Interval interval = {0, 0};
  /// Estimated probability that the next draw is an outcome already seen: 1 - (outcomes seen once)
  /// / n (Good 1953).
  double coverage = 0;

  double effective() const;  ///< 2^corrected: as many equally likely outcomes are as uncertain
};

/// `counts` of outcomes, none negative; those of 0 count for nothing. The result is a function of
/// the multiset of counts, not of their order. Throws Error where all are 0.
Entropy entropy(std::vector<std::int64_t> counts);

/// Entropy of order 2, -log2 of the probability that two draws agree: never above Shannon's, and
/// known from about 2^(bits / 2) draws where that needs 2^bits.
struct CollisionEntropy {
  std::int64_t n = 0;
  std::int64_t collisions = 0;  ///< pairs of draws that agree
  double bits = 0;              ///< infinite without a collision
  /// 95 %, of a Poisson number of collisions (Garwood 1936); the upper end is infinite without one.
  /// Too narrow where collisions come in clusters (few outcomes, many draws).
  Interval interval = {0, 0};
};
/// Throws Error for fewer than two draws.
CollisionEntropy collision_entropy(const std::vector<std::int64_t>& counts);

/// Expected number of distinct outcomes in n draws from `outcomes` equally likely ones (the coupon
/// collector's): K (1 - (1 - 1/K)^n), without cancellation for any K >= 1.
double expected_distinct(double outcomes, std::int64_t n);

}  // namespace numemu::stats
