// Positions are a bias of length x width channels on every sample.
#include "emu/net/ops/position_embedding.hpp"

#include "emu/net/ops/bias.hpp"
#include "formats/error.hpp"

namespace numemu::net {

PositionEmbedding::PositionEmbedding(std::int64_t length, std::int64_t width)
    : length_(length), width_(width) {
  if (length < 1 || width < 1)
    throw Error("position_embedding: the length and the width must be positive");
  // Of the same scale as the rows of an Embedding.
  parameters_.push_back({"weight", Tensor({length, width}), width});
}

Shape PositionEmbedding::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].size() != 3 || inputs[0][1] != length_ ||
      inputs[0][2] != width_) {
    throw Error("position_embedding: expected one input [batch, " + std::to_string(length_) + ", " +
                std::to_string(width_) + "], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  return inputs[0];
}

void PositionEmbedding::forward(const OpCall& call, std::span<const Tensor* const> inputs,
                                Tensor& output) const {
  const SharedTensor read = call.numerics.table(call.step, call.layer, parameters_[0].value);
  output.data = inputs[0]->data;
  add_bias(read ? *read : parameters_[0].value, output);
}

void PositionEmbedding::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                                 const Tensor& grad_output, std::span<Tensor> grad_inputs,
                                 std::span<Tensor> grad_parameters, bool want_inputs) const {
  bias_gradient(grad_output, grad_parameters[0]);
  if (want_inputs) grad_inputs[0].data = grad_output.data;
}

}  // namespace numemu::net
