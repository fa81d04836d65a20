// Tensors joined along one axis.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

/// [.., n1, ..], [.., n2, ..].. -> [.., n1 + n2 + .., ..]; all other axes equal. A negative axis
/// counts from the end. A view: its elements already passed the moments.
class Concat final : public Op {
 public:
  explicit Concat(std::int64_t axis) : axis_(axis) {}
  std::string_view kind() const override { return "concat"; }
  ResultKind result() const override { return ResultKind::view; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::int64_t axis_;
};

}  // namespace numemu::net
