// A constant: a copy of its value.
#include "emu/net/ops/constant.hpp"

#include "formats/error.hpp"

namespace numemu::net {

Constant::Constant(Tensor value, bool trained) {
  // No initial value may replace it: fan_in is negative.
  parameters_.push_back(
      {.name = "value", .value = std::move(value), .fan_in = -1, .trained = trained});
}

Shape Constant::output_shape(std::span<const Shape> inputs) const {
  if (!inputs.empty())
    throw Error("constant: expected no inputs, got " + std::to_string(inputs.size()));
  return parameters_[0].value.shape;
}

void Constant::forward(const OpCall&, std::span<const Tensor* const>, Tensor& output) const {
  output.data = parameters_[0].value.data;
}

void Constant::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                        const Tensor& grad_output, std::span<Tensor>,
                        std::span<Tensor> grad_parameters, bool) const {
  if (parameters_[0].trained) grad_parameters[0].data = grad_output.data;
}

}  // namespace numemu::net
