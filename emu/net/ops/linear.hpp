// Fully connected layers: y = x W^T + b, with trained weights or rows of a Hadamard matrix; their
// three products and the bias, which other layers use, too.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// y [.., channels] += bias [channels] in float32.
void add_bias(const Tensor& bias, Tensor& y);
/// That of a product, or what the numerics read instead.
void add_bias(const OpCall&, const Tensor& bias, Tensor& y);

/// gradient [channels] = sums of grad_output [.., channels] over the leading axes: pairwise in
/// float64, rounded once. Nothing where the gradient is empty, as of a bias that is not trained.
void bias_gradient(const Tensor& grad_output, Tensor& gradient);

/// The layer's name of a product that may repeat in a pass.
struct Repeated {
  std::string_view layer;
  std::int64_t repetition = 0, repetitions = 1;
};

/// y [rows, out] = x [rows, in] * weight [out, in]^T; fprop of the layer.
void dense_forward(const OpCall&, const Repeated&, const Tensor& x, const Tensor& weight,
                   Tensor& y);
/// grad_x [rows, in] = grad_y [rows, out] * weight [out, in]; dgrad of the layer.
void dense_input_gradient(const OpCall&, const Repeated&, const Tensor& grad_y,
                          const Tensor& weight, Tensor& grad_x);
/// grad_weight [out, in] = grad_y [rows, out]^T * x [rows, in]; wgrad of the layer.
/// Nothing where grad_weight is empty, as of a weight that is not trained.
void dense_weight_gradient(const OpCall&, const Repeated&, const Tensor& grad_y, const Tensor& x,
                           Tensor& grad_weight);

/// y [batch, .., out] = x [batch, .., in] * weight [out, in]^T + bias [out]; the bias is added
/// after the product.
class Linear final : public Op {
 public:
  /// Throws Error when a size is not positive.
  Linear(std::int64_t in, std::int64_t out, bool bias = true);
  /// With that weight [out, in], without a copy; the bias is zero.
  Linear(Tensor weight, bool bias);
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  std::int64_t in_, out_;
};

/// Element (row, column) of the Hadamard matrix of any size 2^n (Sylvester's): -1 where row and
/// column have an odd number of bits in common, else 1.
float hadamard_element(std::int64_t row, std::int64_t column);

/// y [.., classes] = -scale H x / (|x| + 1e-8) + bias for x [.., features], H the first classes
/// rows and features columns of a Hadamard matrix, scale one trained number, at first classes^-1/2
/// (Hoffer et al., Fix your classifier, ICLR 2018; the sign is that of the published code). |y -
/// bias| is at most |scale| sqrt(features).
///
/// |x| is summed in float64; x / (|x| + 1e-8) is rounded to float32 and is the left operand of the
/// product, whose result times -scale plus bias is rounded twice. The bias starts at 0.
class HadamardClassifier final : public Op {
 public:
  /// Throws Error when a size is not positive.
  HadamardClassifier(std::int64_t features, std::int64_t classes);
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  std::int64_t features_, classes_;
};

}  // namespace numemu::net
