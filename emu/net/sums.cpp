// Column sums: the leaves of the pairwise tree in parallel, then the tree above them.
#include "emu/net/sums.hpp"

#include <algorithm>

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {
namespace {

// As in formats/portable/pairwise.hpp, which splits at multiples of its leaf: its leaves are runs
// of 64 rows from row 0.
constexpr std::int64_t kLeaf = 64;

// The tree over the sums of the leaves that hold rows [first, first + rows).
double tree(const double* leaves, std::int64_t stride, std::int64_t rows, std::int64_t first) {
  if (rows <= kLeaf) return leaves[first / kLeaf * stride];
  const std::int64_t half = (rows / 2 + kLeaf - 1) / kLeaf * kLeaf;
  return tree(leaves, stride, half, first) + tree(leaves, stride, rows - half, first + half);
}

}  // namespace

std::vector<double> column_sums(const float* x, std::int64_t rows, std::int64_t columns) {
  const std::int64_t leaves = std::max<std::int64_t>(1, (rows + kLeaf - 1) / kLeaf);
  std::vector<double> leaf_sums(static_cast<std::size_t>(leaves * columns));
  double* const partial = leaf_sums.data();
  for_each_row(leaves, kLeaf * columns, [=](std::int64_t leaf) {
    double* const sums = partial + leaf * columns;
    const std::int64_t end = std::min(rows, (leaf + 1) * kLeaf);
    for (std::int64_t r = leaf * kLeaf; r < end; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) sums[c] += x[r * columns + c];
    }
  });
  std::vector<double> sums(static_cast<std::size_t>(columns));
  for (std::int64_t c = 0; c < columns; ++c) sums[c] = tree(partial + c, columns, rows, 0);
  return sums;
}

}  // namespace numemu::net
