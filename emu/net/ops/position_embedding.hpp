// x + a trained vector per position of the sequence.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// y [batch, length, width] = x [batch, length, width] + weight [length, width] in float32 (the
/// learned positions of GPT, Radford et al. 2018). The weight's gradient is the sum over the batch,
/// pairwise in float64, rounded once.
class PositionEmbedding final : public Op {
 public:
  /// Throws Error when a size is not positive.
  PositionEmbedding(std::int64_t length, std::int64_t width);
  std::string_view kind() const override { return "position_embedding"; }
  using Op::parameters;
  std::span<Parameter> parameters() override { return parameters_; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::int64_t length_, width_;
  std::vector<Parameter> parameters_;  // weight
};

}  // namespace numemu::net
