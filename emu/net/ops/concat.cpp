// Concat: every input is a part of the result along one axis.
#include "emu/net/ops/concat.hpp"

#include "emu/net/ops/strided_copy.hpp"
#include "formats/error.hpp"

namespace numemu::net {

Shape Concat::output_shape(std::span<const Shape> inputs) const {
  if (inputs.empty()) throw Error("concat: expected at least one input");
  Shape shape = inputs[0];
  const std::int64_t axis = checked_axis("concat", axis_, shape.size());
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    Shape expected = inputs[0];
    if (inputs[i].size() == expected.size()) expected[axis] = inputs[i][axis];
    if (inputs[i] != expected) {
      throw Error("concat: input " + std::to_string(i) + " of shape " + to_string(inputs[i]) +
                  " does not fit " + to_string(inputs[0]) + " along axis " + std::to_string(axis));
    }
    shape[axis] += inputs[i][axis];
  }
  return shape;
}

void Concat::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  const std::int64_t axis = checked_axis("concat", axis_, output.shape.size());
  Strides to = row_major(output.shape);
  for (const Tensor* x : inputs) {
    strided_copy(x->shape, x->data.data(), row_major(x->shape), output.data.data(), to);
    to.start += x->shape[axis] * to.steps[axis];
  }
}

void Concat::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                      const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                      bool want_inputs) const {
  if (!want_inputs) return;
  const std::int64_t axis = checked_axis("concat", axis_, grad_output.shape.size());
  Strides from = row_major(grad_output.shape);
  for (Tensor& x : grad_inputs) {
    strided_copy(x.shape, grad_output.data.data(), from, x.data.data(), row_major(x.shape));
    from.start += x.shape[axis] * from.steps[axis];
  }
}

}  // namespace numemu::net
