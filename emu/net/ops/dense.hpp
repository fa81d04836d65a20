// The three products of a dense layer, y = x W^T, on row-major matrices.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

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

}  // namespace numemu::net
