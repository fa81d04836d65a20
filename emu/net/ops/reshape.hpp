// The same elements under another shape.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

/// To `target`, the batch's axis included: 0 copies the input's axis of that place, one -1 takes
/// what is left. A view.
class Reshape final : public Op {
 public:
  /// Throws Error for sizes below -1 and more than one -1.
  explicit Reshape(Shape target);
  std::string_view kind() const override { return "reshape"; }
  const Shape& target() const { return target_; }
  ResultKind result() const override { return ResultKind::view; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  bool in_place() const override { return true; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  Shape target_;
};

}  // namespace numemu::net
