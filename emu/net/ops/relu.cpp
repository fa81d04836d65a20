#include "emu/net/ops/relu.hpp"

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {

Shape Relu::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1)
    throw Error("relu: expected one input, got " + std::to_string(inputs.size()));
  return inputs[0];
}

void Relu::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  const float* const x = inputs[0]->data.data();
  float* const y = output.data.data();
  for_each_element(output.size(), [=](std::int64_t i) { y[i] = x[i] <= 0 ? 0 : neutral(x[i]); });
}

void Relu::backward(const OpCall&, std::span<const Tensor* const>, const Tensor* output,
                    const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                    bool want_inputs) const {
  if (!want_inputs) return;
  const float* const y = output->data.data();
  const float* const g = grad_output.data.data();
  float* const out = grad_inputs[0].data.data();
  for_each_element(grad_output.size(),
                   [=](std::int64_t i) { out[i] = y[i] <= 0 ? 0 : neutral(g[i]); });
}

}  // namespace numemu::net
