// The predictors' convolution: 3 x 3, every channel by itself, border of zeros.
#pragma once
#include <span>
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::policies {

/// y [n, h, w, c] = bias [c] + x * weight [c, 3, 3, 1] in float32, products and sums rounded one by
/// one, taps row by row: the same bits on every CPU and for any number of threads. It calls no
/// Numerics: predictors are not part of the network whose numerics are studied.
/// Gradients of the weights are float32 sums down each column of an image, then float64.
class Depthwise3x3 final : public net::Op {
 public:
  /// Throws Error unless channels are positive.
  explicit Depthwise3x3(std::int64_t channels);
  net::Shape output_shape(net::Shapes inputs) const override;
  void forward(const net::OpCall&, net::OpInputs inputs, net::Tensor& output) const override;
  void backward(const net::OpCall&, const net::OpBackward&) const override;

 private:
  std::int64_t channels_;
};

}  // namespace numemu::policies
