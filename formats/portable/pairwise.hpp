// Sums over a fixed pairwise tree in float64: the same bits for any number of threads.
#pragma once
#include <cstdint>

namespace numemu {

/// Terms of a leaf of the tree, which are added in order.
inline constexpr std::int64_t kPairwiseLeaf = 64;

/// How many of n terms the left branch of the tree holds: whole leaves.
constexpr std::int64_t left_branch(std::int64_t n) {
  return ((n / 2 + kPairwiseLeaf - 1) / kPairwiseLeaf) * kPairwiseLeaf;
}

/// Pairwise sum of term(i), i in [0, n): leaves of 64 terms added in order, halves split at the
/// largest multiple of 64. The sums of squares of emu/stats/mean.hpp are the same, and faster.
template <class Term>
double pairwise_sum(std::int64_t n, Term&& term, std::int64_t first = 0) {
  if (n <= kPairwiseLeaf) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += term(first + i);
    return sum;
  }
  const std::int64_t half = left_branch(n);
  return pairwise_sum(half, term, first) + pairwise_sum(n - half, term, first + half);
}

}  // namespace numemu
