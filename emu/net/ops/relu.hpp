// max(x, 0): -0 becomes +0, NaN stays NaN.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

/// y = x where x > 0, +0 where x <= 0, NaN for NaN. The gradient passes where y > 0 (and through
/// NaN).
class Relu final : public Op {
 public:
  std::string_view kind() const override { return "relu"; }
  bool needs_inputs() const override { return false; }
  bool needs_output() const override { return true; }
  bool in_place() const override { return true; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;
};

}  // namespace numemu::net
