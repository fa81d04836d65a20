// The causal mask of attention: no token sees a later one.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

/// x [..., T, T] with every entry above the diagonal of its last two axes replaced by -inf; the
/// gradient passes on and below the diagonal.
class CausalMask final : public Op {
 public:
  std::string_view kind() const override { return "causal_mask"; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  /// Throws Error unless the last two axes are equal.
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;
};

}  // namespace numemu::net
