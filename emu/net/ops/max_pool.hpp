// The largest value of each window of an image.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

/// y [n, oh, ow, c] = max over size x size windows of x [n, h, w, c], oh = (h - size) / stride + 1;
/// a NaN wins. The gradient goes to the first of equal maxima in row-major order.
class MaxPool final : public Op {
 public:
  /// Throws Error when a size is not positive. `stride` 0 means `size`.
  explicit MaxPool(std::int64_t size, std::int64_t stride = 0);
  std::string_view kind() const override { return "max_pool"; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  /// body(window, corner, out) for every window of images [n, h, w, c], offsets of its corner and
  /// of its result.
  template <class Body>
  void for_each_window(const Shape& x, const Shape& y, const Body& body) const;

  std::int64_t size_, stride_;
};

}  // namespace numemu::net
