// Windows of an image: their largest value or their mean.
#pragma once
#include <span>
#include <string_view>

#include "emu/net/memory.hpp"
#include "emu/net/op.hpp"
#include "emu/net/tensor.hpp"

namespace numemu::net {

/// Images [n, w, c], [n, h, w, c] or [n, d, h, w, c]; along axes that are missing the kernel is 1.
struct PoolOptions {
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride_height = 0, stride_width = 0;  ///< 0: the kernel's size
  /// Below the kernel's size, so that every window holds an element.
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  /// Also windows that reach beyond the border behind, as long as they begin before it.
  bool ceil_mode = false;
  /// Averages only: the border counts in the divisor (what lies beyond it never does).
  bool count_include_pad = false;
  std::int64_t kernel_depth = 1, stride_depth = 0, pad_front = 0, pad_back = 0;
  /// Pixels between neighbouring ones of a window, of which only those count.
  std::int64_t dilation_depth = 1, dilation_height = 1, dilation_width = 1;
};

/// Strides filled in. Throws Error naming `op` for sizes out of range.
PoolOptions checked(std::string_view op, PoolOptions);

/// [n, h, w, c] -> [n, oh, ow, c], oh = (h + pad_top + pad_bottom - kernel_height) / stride_height
/// + 1, rounded up in ceil_mode; other axes alike. Throws Error naming `op` for what is no such
/// image or too small.
Shape pooled_shape(std::string_view op, const PoolOptions&, Shapes inputs);

/// The part of a window inside the image along one axis, from, from + step, .. before to, and the
/// number of elements that an average divides by along it.
struct PoolSpan {
  std::int64_t from = 0, to = 0, divisor = 1, step = 1;
};
PoolSpan pool_span(std::int64_t index, std::int64_t kernel, std::int64_t stride,
                   std::int64_t dilation, std::int64_t pad_before, std::int64_t pad_after,
                   std::int64_t size, bool count_include_pad);

/// An image as a volume [n, d, h, w, c]: axes that are missing have extent 1.
Shape as_volume(const Shape&);

/// The pixels of one window inside image n of a volume, and where its result is.
struct PoolWindow {
  PoolSpan planes, rows, columns;
  std::int64_t first = 0;  ///< offset of its first pixel
  std::int64_t out = 0;    ///< offset of its first result

  double divisor() const {
    return static_cast<double>(planes.divisor * rows.divisor * columns.divisor);
  }
  /// body(tap, offset) for every pixel of the volume x, in row-major order; offsets from the first.
  template <class Body>
  void for_each_pixel(const Shape& x, const Body& body) const {
    std::int64_t tap = 0;
    for (std::int64_t i = 0; i < planes.to - planes.from; i += planes.step) {
      for (std::int64_t j = 0; j < rows.to - rows.from; j += rows.step) {
        for (std::int64_t k = 0; k < columns.to - columns.from; k += columns.step)
          body(tap++, ((i * x[2] + j) * x[3] + k) * x[4]);
      }
    }
  }
};

/// body(window) for every window of image n of the volume x, in the order of the results y.
template <class Body>
void for_each_window(const PoolOptions& o, const Shape& x, const Shape& y, std::int64_t n,
                     const Body& body) {
  PoolWindow window;
  window.out = n * y[1] * y[2] * y[3] * y[4];
  for (std::int64_t od = 0; od < y[1]; ++od) {
    window.planes = pool_span(od, o.kernel_depth, o.stride_depth, o.dilation_depth, o.pad_front,
                              o.pad_back, x[1], o.count_include_pad);
    for (std::int64_t oh = 0; oh < y[2]; ++oh) {
      window.rows = pool_span(oh, o.kernel_height, o.stride_height, o.dilation_height, o.pad_top,
                              o.pad_bottom, x[2], o.count_include_pad);
      for (std::int64_t ow = 0; ow < y[3]; ++ow, window.out += y[4]) {
        window.columns = pool_span(ow, o.kernel_width, o.stride_width, o.dilation_width, o.pad_left,
                                   o.pad_right, x[3], o.count_include_pad);
        const std::int64_t plane = n * x[1] + window.planes.from;
        const std::int64_t line = plane * x[2] + window.rows.from;
        window.first = (line * x[3] + window.columns.from) * x[4];
        body(window);
      }
    }
  }
}

/// y [n, o.., c] = max over the windows of x [n, i.., c] along one to three axes; a NaN wins, the
/// border never does. The gradient goes to the first of equal maxima in row-major order. A `vector`
/// result though nothing is rounded: a smaller tensor with a largest value of its own, and a
/// gradient that sums where windows overlap.
class MaxPool final : public Op {
 public:
  /// Throws Error when an option is out of range.
  explicit MaxPool(const PoolOptions&);
  /// size x size windows without a border. `stride` 0 means `size`.
  explicit MaxPool(std::int64_t size, std::int64_t stride = 0);
  const PoolOptions& options() const { return options_; }
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  PoolOptions options_;
};

/// Where the first largest element of every window of max_pool lies in the whole tensor with its
/// channels in front, [n, c, i..], in row-major order or with the axes of a map in opposite order.
class MaxPoolPlaces final : public Op {
 public:
  /// Throws Error when an option is out of range.
  MaxPoolPlaces(const PoolOptions&, bool column_major);
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  /// Places have no gradient.
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  PoolOptions options_;
  bool column_major_;
};

/// y [n, o.., c] = mean over the windows of x [n, i.., c] along one to three axes, summed in
/// float64 in row-major order and rounded once. A gradient is the float64 sum of gradient / divisor
/// over its windows in row-major order, rounded once.
class AveragePool final : public Op {
 public:
  /// Throws Error when an option is out of range.
  explicit AveragePool(const PoolOptions&);
  const PoolOptions& options() const { return options_; }
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;
  OperatorMemory memory(Shapes inputs) const override;

 private:
  PoolOptions options_;
};

/// [n, .., c] -> [n, 1.., c]: the pairwise float64 sum over the axes between, divided and rounded
/// once.
class GlobalAveragePool final : public Op {
 public:
  GlobalAveragePool() : Op({.kind = "global_average_pool", .inputs = kNoInput}) {}
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;
};

}  // namespace numemu::net
