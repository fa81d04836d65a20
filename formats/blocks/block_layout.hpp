// The blocks of a tensor: which elements share a scale, and where that scale is stored.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/blocks/block_format.hpp"

namespace numemu {

/// The elements of one block: first + r run_step + j step for r in [0, runs), j in [0, count), in
/// the order of the tensor.
struct BlockElements {
  std::int64_t first = 0;
  std::int64_t runs = 1, run_step = 0;
  std::int64_t count = 0, step = 1;

  std::int64_t size() const { return runs * count; }
  /// Index in the tensor of the block's element k in [0, size()).
  std::int64_t at(std::int64_t k) const { return first + k / count * run_step + k % count * step; }
  bool contiguous() const { return runs == 1 && step == 1; }
  /// Calls visit(i) for the index i of every element in order, without the divisions of at().
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t r = 0; r < runs; ++r)
      for (std::int64_t j = 0; j < count; ++j) visit(first + r * run_step + j * step);
  }
  /// block[k] = x[at(k)] for k in [0, size()).
  void gather(const float* x, float* block) const;
};

/// A tensor seen as outer x length x inner, C order, with blocks along `length`.
/// `span` block: every line of `length` elements (step `inner`) is cut into `per_line` blocks of
/// `size`, the last one short if need be; inner == 1 are the contiguous rows of the last axis.
/// `tile`: outer matrices of length x inner, each cut into `per_line` bands of `rows` rows and
/// those into `per_band` tiles of `size` columns. `tensor` and `row`: the same with one block per
/// line. `channel`: block c is [:, c, :].
struct BlockLayout {
  Span span = Span::block;
  std::int64_t outer = 1, length = 0, inner = 1;
  std::int64_t size = 0;
  std::int64_t per_line = 0;
  std::int64_t rows = 1, per_band = 1;    ///< of tiles
  std::int64_t blocks = 0;                ///< number of blocks, that is of scales
  std::vector<std::int64_t> scale_shape;  ///< shape of the array of scales (specification: Arrays)

  std::int64_t elements() const { return outer * length * inner; }
  /// Block b in [0, blocks), in the C order of scale_shape.
  BlockElements block(std::int64_t b) const;
  /// The block of the tensor's element i.
  std::int64_t block_of(std::int64_t i) const;
};

/// The layout of a tensor of that shape. `axis` in [-rank, rank) counts for block and channel; rows
/// are always along the last axis, tiles along the last two. Throws Error for an axis that is not
/// there, a scalar without axes (unless `span` is tensor), and sizes beyond int64.
BlockLayout block_layout(const BlockFormat&, const std::vector<std::int64_t>& shape, int axis);

/// Stored bits per element of such a tensor: codes, scales, zero points and tensor scale; 0 for an
/// empty one.
double stored_bits(const BlockFormat&, const BlockLayout&);

}  // namespace numemu
