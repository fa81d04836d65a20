// All axes but the batch become one; the elements stay where they are (NHWC order for images).
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

/// [batch, ...] -> [batch, product of the rest].
class Flatten final : public Op {
 public:
  std::string_view kind() const override { return "flatten"; }
  ResultKind result() const override { return ResultKind::view; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  bool in_place() const override { return true; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;
};

}  // namespace numemu::net
