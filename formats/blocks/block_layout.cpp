// Cuts tensors into blocks along an axis, into channels, rows, or not at all.
#include "formats/blocks/block_layout.hpp"

#include <algorithm>
#include <string>

#include "formats/error.hpp"
#include "formats/storage/array.hpp"

namespace numemu {
namespace {

constexpr std::int64_t kMostEmptyBlocks = std::int64_t{1} << 20;

std::int64_t product(const ArrayShape& shape, std::size_t begin, std::size_t end) {
  for (const std::int64_t extent : shape)
    if (extent < 0) throw Error("shape " + shape_text(shape) + " has a negative extent");
  const auto at = [&](std::size_t i) { return shape.begin() + static_cast<std::ptrdiff_t>(i); };
  const auto result = element_count_of({at(begin), at(end)});
  if (!result) throw Error("shape " + shape_text(shape) + " has more than 2^63 - 1 elements");
  return *result;
}

BlockLayout lay_out(const BlockFormat& f, const ArrayShape& shape, int axis) {
  const auto rank = static_cast<int>(shape.size());
  BlockLayout layout;
  layout.span = f.span;
  const std::int64_t elements = product(shape, 0, shape.size());  // refuses what is too large
  if (f.span == Span::tensor) {
    layout.length = layout.size = elements;
    layout.per_line = layout.blocks = 1;
    return layout;
  }
  if (rank == 0)
    throw Error("a scalar, shape [], has no axis to cut; expected at least one for " + f.name);
  if (f.span == Span::tile) {
    if (rank < 2)
      throw Error("shape " + shape_text(shape) + " has one axis, expected at least two for " +
                  f.name);
    axis = -2;
  }
  if (f.span == Span::row) axis = -1;
  if (axis < -rank || axis >= rank)
    throw Error("axis " + std::to_string(axis) + " is outside " + std::to_string(-rank) + ".." +
                std::to_string(rank - 1) + " of shape " + shape_text(shape));
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  layout.outer = product(shape, 0, at);
  layout.length = shape[at];
  layout.inner = product(shape, at + 1, shape.size());
  switch (f.span) {
    case Span::channel:
      layout.size = layout.per_line = 1;
      layout.blocks = layout.length;
      layout.scale_shape = {layout.length};
      return layout;
    case Span::row:
      layout.size = layout.length;
      layout.per_line = 1;
      layout.blocks = layout.outer;
      layout.scale_shape.assign(shape.begin(), shape.end() - 1);
      return layout;
    case Span::tile:
      layout.size = f.size;
      layout.rows = f.rows;
      layout.per_line = layout.length / f.rows + (layout.length % f.rows != 0);
      layout.per_band = layout.inner / f.size + (layout.inner % f.size != 0);
      layout.blocks = layout.outer * layout.per_line * layout.per_band;
      layout.scale_shape = shape;
      layout.scale_shape[at] = layout.per_line;
      layout.scale_shape[at + 1] = layout.per_band;
      return layout;
    default:
      layout.size = f.size;
      layout.per_line = layout.length / f.size + (layout.length % f.size != 0);
      layout.blocks = layout.outer * layout.per_line * layout.inner;
      layout.scale_shape = shape;
      layout.scale_shape[at] = layout.per_line;
      return layout;
  }
}

}  // namespace

void BlockElements::gather(const float* x, float* block) const {
  for_each([&](std::int64_t i) { *block++ = x[i]; });
}

BlockElements BlockLayout::block(std::int64_t b) const {
  if (span == Span::channel) return {b * inner, outer, length * inner, inner, 1};
  if (span == Span::tile) {
    const std::int64_t column = b % per_band * size, band = b / per_band % per_line;
    const std::int64_t row = band * rows, matrix = b / per_band / per_line;
    return {(matrix * length + row) * inner + column, std::min(rows, length - row), inner,
            std::min(size, inner - column), 1};
  }
  const std::int64_t in = b % inner, line = b / inner;
  const std::int64_t k = line % per_line, begin = k * size;
  return {(line / per_line * length + begin) * inner + in, 1, 0, std::min(size, length - begin),
          inner};
}

std::int64_t BlockLayout::block_of(std::int64_t i) const {
  const std::int64_t in = i % inner, k = i / inner % length, out = i / inner / length;
  if (span == Span::channel) return k;
  if (span == Span::tile) return (out * per_line + k / rows) * per_band + in / size;
  return (out * per_line + k / size) * inner + in;
}

BlockLayout block_layout(const BlockFormat& f, const ArrayShape& shape, int axis) {
  BlockLayout layout = lay_out(f, shape, axis);
  // Channels and rows of nothing have scales too; a header of a few bytes could request any number.
  if (layout.elements() == 0 && layout.blocks > kMostEmptyBlocks)
    throw Error("an empty tensor of shape " + shape_text(shape) + " would have " +
                std::to_string(layout.blocks) + " scales, expected at most 2^20");
  return layout;
}

double stored_bits(const BlockFormat& f, const BlockLayout& layout) {
  const auto n = static_cast<double>(layout.elements());
  if (n == 0) return 0;
  const double scales = static_cast<double>(layout.blocks) * f.scale_bits();
  return f.element->bits + (scales + (f.tensor_scale ? 32 : 0)) / n;
}

}  // namespace numemu
