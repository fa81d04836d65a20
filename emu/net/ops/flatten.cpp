// Flatten copies the elements under another shape.
#include "emu/net/ops/flatten.hpp"

#include "formats/error.hpp"

namespace numemu::net {

Shape Flatten::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].empty())
    throw Error("flatten: expected one input with a batch axis");
  return {inputs[0][0], element_count(Shape(inputs[0].begin() + 1, inputs[0].end()))};
}

void Flatten::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  output.data = inputs[0]->data;
}

void Flatten::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                       const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                       bool want_inputs) const {
  if (want_inputs) grad_inputs[0].data = grad_output.data;
}

}  // namespace numemu::net
