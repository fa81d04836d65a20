// The three products of a dense layer, y = x W^T, on row-major matrices.
#pragma once
#include "emu/net/numerics.hpp"

namespace numemu::net {

/// y [rows, out] = x [rows, in] * weight [out, in]^T; fprop of `layer`.
void dense_forward(Numerics&, std::string_view layer, const Tensor& x, const Tensor& weight,
                   Tensor& y);
/// grad_x [rows, in] = grad_y [rows, out] * weight [out, in]; dgrad of `layer`.
void dense_input_gradient(Numerics&, std::string_view layer, const Tensor& grad_y,
                          const Tensor& weight, Tensor& grad_x);
/// grad_weight [out, in] = grad_y [rows, out]^T * x [rows, in]; wgrad of `layer`.
void dense_weight_gradient(Numerics&, std::string_view layer, const Tensor& grad_y, const Tensor& x,
                           Tensor& grad_weight);

}  // namespace numemu::net
