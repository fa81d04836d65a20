// The leaves of the pairwise tree in parallel, then the tree above them; patterns of axes that are
// neither rows nor columns after a transposition.
#include "emu/net/ops/sums.hpp"

#include <algorithm>

#include "emu/net/ops/elementwise.hpp"
#include "formats/portable/pairwise.hpp"

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

namespace {

struct Axis {
  std::int64_t extent = 1;
  std::int64_t stride = 1;
  bool summed = false;
};

// Neighbours of one kind are one axis; axes of extent 1 are none.
std::vector<Axis> merged_axes(const Shape& shape, const std::vector<bool>& summed) {
  std::vector<Axis> axes;  // outermost first
  std::int64_t stride = element_count(shape);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    stride /= shape[i];
    if (!axes.empty() && axes.back().summed == summed[i]) {
      axes.back().extent *= shape[i];
      axes.back().stride = stride;
    } else {
      axes.push_back({shape[i], stride, summed[i]});
    }
  }
  return axes;
}

// Offsets of all places in the axes of one kind, in row-major order.
std::vector<std::int64_t> offsets(const std::vector<Axis>& axes, bool summed) {
  std::vector<std::int64_t> result{0};
  for (const Axis& axis : axes) {
    if (axis.summed != summed) continue;
    std::vector<std::int64_t> next;
    next.reserve(result.size() * static_cast<std::size_t>(axis.extent));
    for (const std::int64_t base : result) {
      for (std::int64_t i = 0; i < axis.extent; ++i) next.push_back(base + i * axis.stride);
    }
    result = std::move(next);
  }
  return result;
}

}  // namespace

std::vector<double> axis_sums(const float* x, const Shape& shape, const std::vector<bool>& summed) {
  std::int64_t rows = 1, columns = 1;  // summed and kept elements
  for (std::size_t i = 0; i < shape.size(); ++i) (summed[i] ? rows : columns) *= shape[i];
  if (rows == 0 || columns == 0) return std::vector<double>(static_cast<std::size_t>(columns));

  const std::vector<Axis> axes = merged_axes(shape, summed);
  if (axes.empty() || (axes.size() <= 2 && !axes.back().summed))
    return column_sums(x, rows, columns);
  if (axes.size() <= 2) {  // the last axis is summed
    std::vector<double> sums(static_cast<std::size_t>(columns));
    double* const out = sums.data();
    for_each_row(columns, rows, [=](std::int64_t c) {
      const float* const line = x + c * rows;
      out[c] = pairwise_sum(rows, [=](std::int64_t r) { return line[r]; });
    });
    return sums;
  }
  if (axes.size() == 3 && !axes[0].summed) {  // columns of several matrices
    const std::int64_t matrices = axes[0].extent, width = columns / matrices;
    std::vector<double> sums(static_cast<std::size_t>(columns));
    for_each_row(matrices, axes[0].stride, [&](std::int64_t m) {
      const std::vector<double> part = column_sums(x + m * axes[0].stride, rows, width);
      std::copy(part.begin(), part.end(), sums.begin() + m * width);
    });
    return sums;
  }
  const std::vector<std::int64_t> row_offsets = offsets(axes, true);
  const std::vector<std::int64_t> column_offsets = offsets(axes, false);
  std::vector<float> matrix(static_cast<std::size_t>(rows * columns));
  for_each_row(rows, columns, [&](std::int64_t r) {
    for (std::int64_t c = 0; c < columns; ++c)
      matrix[r * columns + c] = x[row_offsets[r] + column_offsets[c]];
  });
  return column_sums(matrix.data(), rows, columns);
}

void sum_to(const Tensor& x, Tensor& small) {
  const std::size_t rank = x.shape.size(), missing = rank - small.shape.size();
  std::vector<bool> summed(rank);
  for (std::size_t i = 0; i < rank; ++i)
    summed[i] = i < missing || (small.shape[i - missing] == 1 && x.shape[i] != 1);
  const std::vector<double> sums = axis_sums(x.data.data(), x.shape, summed);
  for (std::size_t i = 0; i < sums.size(); ++i)
    small.data[i] = neutral(static_cast<float>(sums[i]));
}

}  // namespace numemu::net
