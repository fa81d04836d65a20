// The mean of each channel of an image.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

/// [n, .., c] -> [n, 1.., c]: the pairwise float64 sum over the axes between, divided and rounded
/// once.
class GlobalAveragePool final : public Op {
 public:
  std::string_view kind() const override { return "global_average_pool"; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;
};

}  // namespace numemu::net
