// How a GEMM operand is read from its source: an element is a row offset plus a depth offset.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::unit {

/// Zero padding and dilation of a tensor seen as [outer, depth, height, width, channels], done on
/// codes after quantization, so that a tensor is quantized once and im2col is never materialised.
struct Padding {
  std::int64_t outer = 1, height = 1, width = 1, channels = 1;  ///< the source
  std::int64_t top = 0, left = 0;                               ///< where source (0, 0) lands
  std::int64_t padded_height = 1, padded_width = 1;
  std::int32_t dilation = 1;  ///< distance between neighbouring source pixels in the padded tensor
  std::int32_t dilation_height = 0;  ///< where that of rows is another; 0: `dilation`
  std::int64_t depth = 1, front = 0, padded_depth = 1;  ///< the third axis of volumes
  std::int32_t dilation_depth = 1;

  std::int32_t row_dilation() const { return dilation_height == 0 ? dilation : dilation_height; }
  bool identity() const {
    return front == 0 && top == 0 && left == 0 && dilation == 1 && row_dilation() == 1 &&
           dilation_depth == 1 && depth == padded_depth && height == padded_height &&
           width == padded_width;
  }
  bool operator==(const Padding&) const = default;
  std::int64_t source_size() const { return outer * depth * height * width * channels; }
  std::int64_t padded_size() const {
    return outer * padded_depth * padded_height * padded_width * channels;
  }
};

/// Operand element (r, k) = padded source [row[r] + depth[k]].
struct Gather {
  Padding padding;  ///< identity unless the operand reads around the border
  std::vector<std::int32_t> row, depth;

  bool operator==(const Gather&) const = default;
  /// A row-major matrix of rows x depth elements, or of depth x rows when `transposed`. Throws
  /// Error beyond 2^31 elements.
  static Gather matrix(std::int64_t rows, std::int64_t depth, bool transposed = false);
};

/// Copies `source` into `padded` (padded_size elements), every other element `zero`. T is uint8,
/// uint16 or float.
template <class T>
void pad(const Padding&, const T* source, T* padded, T zero);

/// Calls visit(source offset, padded offset, count) for each contiguous run of the outer index `o`,
/// in source order.
template <class Visit>
void for_each_padding_span(const Padding& p, std::int64_t o, Visit&& visit) {
  for (std::int64_t row = 0; row < p.depth * p.height; ++row) {
    const std::int64_t z = row / p.height, y = row % p.height;
    const std::int64_t from = (o * p.depth * p.height + row) * p.width * p.channels;
    const std::int64_t plane = o * p.padded_depth + p.front + z * p.dilation_depth;
    const std::int64_t line = plane * p.padded_height + p.top + y * p.row_dilation();
    const std::int64_t to = (line * p.padded_width + p.left) * p.channels;
    if (p.dilation == 1) {
      visit(from, to, p.width * p.channels);
      continue;
    }
    for (std::int64_t x = 0; x < p.width; ++x)
      visit(from + x * p.channels, to + x * p.dilation * p.channels, p.channels);
  }
}

}  // namespace numemu::unit
