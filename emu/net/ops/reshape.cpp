#include "emu/net/ops/reshape.hpp"

#include <algorithm>

#include "formats/error.hpp"

namespace numemu::net {

Reshape::Reshape(Shape target) : target_(std::move(target)) {
  if (std::ranges::any_of(target_, [](std::int64_t n) { return n < -1; }) ||
      std::ranges::count(target_, -1) > 1) {
    throw Error("reshape: expected sizes, 0 and at most one -1, got " + to_string(target_));
  }
}

Shape Reshape::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1)
    throw Error("reshape: expected one input, got " + std::to_string(inputs.size()));
  const Shape& x = inputs[0];
  const auto refuse = [&] {
    throw Error("reshape: " + to_string(x) + " has no shape " + to_string(target_));
  };
  Shape shape = target_;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) {
      if (i >= x.size()) refuse();
      shape[i] = x[i];
    }
    if (shape[i] > 0 && known > element_count(x) / shape[i]) refuse();
    if (shape[i] > 0) known *= shape[i];
  }
  for (std::int64_t& size : shape) {
    if (size == -1) size = element_count(x) / known;
  }
  if (element_count(shape) != element_count(x)) refuse();
  return shape;
}

void Reshape::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  output.data = inputs[0]->data;
}

void Reshape::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                       const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                       bool want_inputs) const {
  if (want_inputs) grad_inputs[0].data = grad_output.data;
}

}  // namespace numemu::net
