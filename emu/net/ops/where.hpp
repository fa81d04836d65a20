// Elements of two tensors selected by the elements of a third.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

/// y = condition != 0 ? a : b for inputs (condition, a, b) broadcast as in numpy; a NaN condition
/// counts as true. The condition's gradient is 0.
class Where final : public Op {
 public:
  std::string_view kind() const override { return "where"; }
  std::optional<Use> input_use(std::size_t i) const override {
    return i == 0 ? std::optional(Use::index) : std::nullopt;
  }
  /// Throws Error unless there are three inputs whose shapes fit.
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;
};

}  // namespace numemu::net
