// Transpose: a strided copy there, the same copy with its sides swapped back.
#include "emu/net/ops/transpose.hpp"

#include "emu/net/ops/strided_copy.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

// Steps of the input along the axes of the result.
Strides permuted(const std::vector<std::int64_t>& permutation, const Shape& result) {
  Shape input(result.size());
  for (std::size_t i = 0; i < result.size(); ++i) input[permutation[i]] = result[i];
  const Strides plain = row_major(input);
  Strides strides{0, Shape(result.size())};
  for (std::size_t i = 0; i < result.size(); ++i) strides.steps[i] = plain.steps[permutation[i]];
  return strides;
}

}  // namespace

Transpose::Transpose(std::vector<std::int64_t> permutation) : permutation_(std::move(permutation)) {
  std::vector<bool> seen(permutation_.size());
  for (const std::int64_t axis : permutation_) {
    const bool inside = axis >= 0 && axis < static_cast<std::int64_t>(seen.size());
    if (!inside || seen[axis])
      throw Error("transpose: " + to_string(permutation_) + " is not a permutation of the axes");
    seen[axis] = true;
  }
}

Shape Transpose::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].size() != permutation_.size()) {
    throw Error("transpose: expected one input of " + std::to_string(permutation_.size()) +
                " axes, got " + (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  Shape shape;
  for (const std::int64_t axis : permutation_) shape.push_back(inputs[0][axis]);
  return shape;
}

void Transpose::forward(const OpCall&, std::span<const Tensor* const> inputs,
                        Tensor& output) const {
  const Shape& y = output.shape;
  strided_copy(y, inputs[0]->data.data(), permuted(permutation_, y), output.data.data(),
               row_major(y));
}

void Transpose::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                         const Tensor& grad_output, std::span<Tensor> grad_inputs,
                         std::span<Tensor>, bool want_inputs) const {
  if (!want_inputs) return;
  const Shape& y = grad_output.shape;
  strided_copy(y, grad_output.data.data(), row_major(y), grad_inputs[0].data.data(),
               permuted(permutation_, y));
}

}  // namespace numemu::net
