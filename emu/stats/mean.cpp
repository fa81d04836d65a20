#include "emu/stats/mean.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "formats/portable/pairwise.hpp"

namespace numemu::stats {
namespace {

/// The sum of n terms from the sums of their leaves.
double sum_of_leaves(std::int64_t n, const double* leaves) {
  if (n <= kPairwiseLeaf) return *leaves;
  const std::int64_t half = left_branch(n);
  return sum_of_leaves(half, leaves) + sum_of_leaves(n - half, leaves + half / kPairwiseLeaf);
}

/// pairwise_sum of the squares of term(i). Each addition of a leaf waits for the one before it, so
/// several leaves are added side by side.
template <class Term>
double squares(std::int64_t n, const Term& term) {
  constexpr std::int64_t kSideBySide = 8;
  if (n < kSideBySide * kPairwiseLeaf)
    return pairwise_sum(n, [&](std::int64_t i) { return term(i) * term(i); });
  std::vector<double> leaves(static_cast<std::size_t>((n + kPairwiseLeaf - 1) / kPairwiseLeaf));
  std::int64_t first = 0;
  for (; first + kSideBySide * kPairwiseLeaf <= n; first += kSideBySide * kPairwiseLeaf) {
    std::array<double, kSideBySide> sums = {};
    for (std::int64_t i = 0; i < kPairwiseLeaf; ++i) {
      for (std::int64_t k = 0; k < kSideBySide; ++k) {
        const double value = term(first + k * kPairwiseLeaf + i);
        sums[k] += value * value;
      }
    }
    std::copy(sums.begin(), sums.end(), &leaves[first / kPairwiseLeaf]);
  }
  for (; first < n; first += kPairwiseLeaf) {
    leaves[first / kPairwiseLeaf] = pairwise_sum(
        std::min(kPairwiseLeaf, n - first), [&](std::int64_t i) { return term(i) * term(i); },
        first);
  }
  return sum_of_leaves(n, leaves.data());
}

}  // namespace

double sum_of_squares(std::int64_t n, const float* x) {
  return squares(n, [=](std::int64_t i) { return double{x[i]}; });
}

double sum_of_squared_differences(std::int64_t n, const float* x, const float* y) {
  return squares(n, [=](std::int64_t i) { return double{x[i]} - y[i]; });
}

}  // namespace numemu::stats
