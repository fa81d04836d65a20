// Pad: a strided copy into a tensor of constants, and out of the gradient.
#include "emu/net/ops/pad.hpp"

#include <algorithm>

#include "emu/net/ops/strided_copy.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

// Where the input's elements lie in the padded tensor.
Strides inside(const std::vector<std::int64_t>& before, const Shape& padded) {
  Strides strides = row_major(padded);
  for (std::size_t i = 0; i < before.size(); ++i) strides.start += before[i] * strides.steps[i];
  return strides;
}

}  // namespace

Pad::Pad(std::vector<std::int64_t> before, std::vector<std::int64_t> after, float value)
    : before_(std::move(before)), after_(std::move(after)), value_(value) {
  const auto negative = [](std::int64_t n) { return n < 0; };
  if (before_.size() != after_.size() || std::ranges::any_of(before_, negative) ||
      std::ranges::any_of(after_, negative)) {
    throw Error("pad: expected two lists of the same length without negative numbers, got " +
                to_string(before_) + " and " + to_string(after_));
  }
}

Shape Pad::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].size() != before_.size()) {
    throw Error("pad: expected one input of " + std::to_string(before_.size()) + " axes, got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  Shape shape = inputs[0];
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] += before_[i] + after_[i];
  return shape;
}

void Pad::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  std::fill(output.data.begin(), output.data.end(), value_);
  strided_copy(inputs[0]->shape, inputs[0]->data.data(), row_major(inputs[0]->shape),
               output.data.data(), inside(before_, output.shape));
}

void Pad::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                   const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                   bool want_inputs) const {
  if (!want_inputs) return;
  const Shape& x = grad_inputs[0].shape;
  strided_copy(x, grad_output.data.data(), inside(before_, grad_output.shape),
               grad_inputs[0].data.data(), row_major(x));
}

}  // namespace numemu::net
