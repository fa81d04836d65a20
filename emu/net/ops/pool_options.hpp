// The windows of pooling: size, stride, border, and how many there are.
#pragma once
#include <span>
#include <string_view>

#include "emu/net/tensor.hpp"

namespace numemu::net {

struct PoolOptions {
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride_height = 0, stride_width = 0;  ///< 0: the kernel's size
  /// Below the kernel's size, so that every window holds an element.
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  /// Also windows that reach beyond the border behind, as long as they begin before it.
  bool ceil_mode = false;
  /// Averages only: the border counts in the divisor (what lies beyond it never does).
  bool count_include_pad = false;
};

/// Strides filled in. Throws Error naming `op` for sizes out of range.
PoolOptions checked(std::string_view op, PoolOptions);

/// [n, h, w, c] -> [n, oh, ow, c], oh = (h + pad_top + pad_bottom - kernel_height) / stride_height
/// + 1, rounded up in ceil_mode. Throws Error naming `op` for what is no such image or too small.
Shape pooled_shape(std::string_view op, const PoolOptions&, std::span<const Shape> inputs);

/// The part of a window inside the image along one axis, [from, to), and the number of elements
/// that an average divides by along it.
struct PoolSpan {
  std::int64_t from = 0, to = 0, divisor = 1;
};
PoolSpan pool_span(std::int64_t index, std::int64_t kernel, std::int64_t stride,
                   std::int64_t pad_before, std::int64_t pad_after, std::int64_t size,
                   bool count_include_pad);

}  // namespace numemu::net
