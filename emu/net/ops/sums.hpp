// Fixed trees of float64 sums over lines, columns and chosen axes: gradients of biases and of
// broadcast inputs, statistics of normalisations, means.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/tensor.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {

/// sums[c] = pairwise_sum(rows, x[r * columns + c]) of formats/portable/pairwise.hpp, bit for bit,
/// over OpenMP threads.
std::vector<double> column_sums(const float* x, std::int64_t rows, std::int64_t columns);

/// The sum of term(i), i in [0, n): as pairwise_sum over blocks of 8 terms, except that the
/// 8 blocks of a leaf are added as vectors, then their 8 lanes pairwise. No addition waits for the
/// one before it, so it runs at about four times the speed.
template <class Term>
double line_sum(std::int64_t n, const Term& term, std::int64_t first = 0) {
  constexpr std::int64_t kLanes = 8;
  if (n > kPairwiseLeaf) {
    const std::int64_t half = left_branch(n);
    return line_sum(half, term, first) + line_sum(n - half, term, first + half);
  }
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(first + i + lane);
  }
  for (std::int64_t lane = 0; i + lane < n; ++lane) lanes[lane] += term(first + i + lane);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/// For each of `columns`, the sum over the rows [0, rows) of what add_row(row, sums) adds to
/// sums[column]: the tree of net::column_sums, over OpenMP threads.
template <class AddRow>
std::vector<double> column_tree(std::int64_t rows, std::int64_t columns, const AddRow& add_row) {
  constexpr std::int64_t kLeaf = kPairwiseLeaf;
  const std::int64_t leaves = std::max<std::int64_t>(1, (rows + kLeaf - 1) / kLeaf);
  std::vector<double> partial(static_cast<std::size_t>(leaves * columns));
  double* const sums = partial.data();
  for_each_row(leaves, kLeaf * columns, [&](std::int64_t leaf) {
    const std::int64_t end = std::min(rows, (leaf + 1) * kLeaf);
    for (std::int64_t row = leaf * kLeaf; row < end; ++row) add_row(row, sums + leaf * columns);
  });
  // The halves of pairwise_sum lie on leaf borders: leaf by leaf the tree is this recursion.
  const auto gather = [&](const auto& self, std::int64_t first, std::int64_t count) -> double* {
    double* const total = sums + first * columns;
    if (count == 1) return total;
    const std::int64_t here = std::min(count * kLeaf, rows - first * kLeaf);
    const std::int64_t half = left_branch(here) / kLeaf;
    self(self, first, half);
    const double* const right = self(self, first + half, count - half);
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) total[c] += right[c];
    return total;
  };
  gather(gather, 0, leaves);
  partial.resize(static_cast<std::size_t>(columns));
  return partial;
}

/// The sums of x [shape] over the axes where `summed`, one for each place in the other axes in
/// row-major order: each the pairwise sum in float64 (formats/portable/pairwise.hpp) of its
/// elements in row-major order.
std::vector<double> axis_sums(const float* x, const Shape& shape, const std::vector<bool>& summed);

/// small = sums of `x` over the axes along which small, broadcast as in numpy, is repeated in x;
/// rounded once.
void sum_to(const Tensor& x, Tensor& small);

}  // namespace numemu::net
