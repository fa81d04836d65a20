// Shapes, and the tensors that each loop reads.
#include "emu/net/ops/pointwise.hpp"

#include "formats/error.hpp"

namespace numemu::net {

Shape Pointwise::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1) {
    throw Error(std::string(kind()) + ": expected one input, got " + std::to_string(inputs.size()));
  }
  return inputs[0];
}

void Pointwise::forward(const OpCall&, std::span<const Tensor* const> inputs,
                        Tensor& output) const {
  values(output.size(), inputs[0]->data.data(), output.data.data());
}

void Pointwise::backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                         const Tensor& grad_output, std::span<Tensor> grad_inputs,
                         std::span<Tensor>, bool want_inputs) const {
  if (!want_inputs) return;
  const Tensor* const seen = sees_ == Sees::nothing ? nullptr
                             : sees_ == Sees::input ? inputs[0]
                                                    : output;
  gradients(grad_output.size(), seen == nullptr ? nullptr : seen->data.data(),
            grad_output.data.data(), grad_inputs[0].data.data());
}

}  // namespace numemu::net
