// Softmax over one axis.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

/// y = e^(x - max) / sum e^(x - max) along `axis`, in float64, rounded once. Entries -inf give 0; a
/// line of nothing but -inf, or with NaN or +inf, gives NaN. dx = y (g - sum g y).
class Softmax final : public Op {
 public:
  /// A negative axis counts from the end.
  explicit Softmax(std::int64_t axis = -1) : axis_(axis) {}
  std::string_view kind() const override { return "softmax"; }
  std::int64_t axis() const { return axis_; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  std::optional<Use> output_use() const override { return Use::statistic; }
  /// Throws Error when the input has no such axis, or no elements along it.
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::int64_t axis_;
};

}  // namespace numemu::net
