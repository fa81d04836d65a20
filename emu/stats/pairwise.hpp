// Sums over a fixed pairwise tree in float64: the same bits for any number of threads.
#pragma once
#include <cstdint>

namespace numemu::stats {

/// Pairwise sum of term(i), i in [0, n): leaves of 64 terms added in order, halves split at the
/// largest multiple of 64.
template <class Term>
double pairwise_sum(std::int64_t n, Term&& term, std::int64_t first = 0) {
  constexpr std::int64_t kLeaf = 64;
  if (n <= kLeaf) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += term(first + i);
    return sum;
  }
  const std::int64_t half = ((n / 2 + kLeaf - 1) / kLeaf) * kLeaf;
  return pairwise_sum(half, term, first) + pairwise_sum(n - half, term, first + half);
}

}  // namespace numemu::stats
