// Copies between strides, there and back: the last axis is the inner loop, the lines before it go
// to threads.
#include "emu/net/ops/views.hpp"

#include <algorithm>
#include <cstring>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {

Strides row_major(const Shape& shape) {
  Strides strides{0, Shape(shape.size())};
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0; step *= shape[i]) strides.steps[i] = step;
  return strides;
}

void strided_copy(const Shape& extent, const float* from, const Strides& from_strides, float* to,
                  const Strides& to_strides) {
  const std::int64_t total = element_count(extent);
  if (total == 0) return;
  if (extent.empty()) {
    to[to_strides.start] = from[from_strides.start];
    return;
  }
  const std::size_t last = extent.size() - 1;
  const std::int64_t length = extent[last];
  const std::int64_t from_step = from_strides.steps[last], to_step = to_strides.steps[last];
  for_each_row(total / length, length, [&](std::int64_t line) {
    std::int64_t source = from_strides.start, target = to_strides.start, rest = line;
    for (std::size_t i = last; i-- > 0; rest /= extent[i]) {
      source += rest % extent[i] * from_strides.steps[i];
      target += rest % extent[i] * to_strides.steps[i];
    }
    if (from_step == 1 && to_step == 1) {
      std::memcpy(to + target, from + source, static_cast<std::size_t>(length) * sizeof(float));
      return;
    }
    for (std::int64_t i = 0; i < length; ++i)
      to[target + i * to_step] = from[source + i * from_step];
  });
}

std::int64_t checked_axis(const char* op, std::int64_t axis, std::size_t rank) {
  const std::int64_t axes = static_cast<std::int64_t>(rank);
  if (axis < -axes || axis >= axes) {
    throw Error(std::string(op) + ": axis " + std::to_string(axis) + " of a tensor of " +
                std::to_string(axes) + " axes");
  }
  return axis < 0 ? axis + axes : axis;
}

Shape Flatten::output_shape(Shapes inputs) const {
  if (inputs.size() != 1 || inputs[0].empty())
    throw Error("flatten: expected one input with a batch axis");
  return {inputs[0][0], element_count(Shape(inputs[0].begin() + 1, inputs[0].end()))};
}

void Flatten::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  output.data = inputs[0]->data;
}

void Flatten::backward(const OpCall&, const OpBackward& back) const {
  if (back.want_inputs) back.grad_inputs[0].data = back.grad_output.data;
}

Reshape::Reshape(Shape target)
    : Op({.kind = "reshape", .result = ResultKind::view, .inputs = kNoInput, .in_place = true}),
      target_(std::move(target)) {
  if (std::ranges::any_of(target_, [](std::int64_t n) { return n < -1; }) ||
      std::ranges::count(target_, -1) > 1) {
    throw Error("reshape: expected sizes, 0 and at most one -1, got " + to_string(target_));
  }
}

Shape Reshape::output_shape(Shapes inputs) const {
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

void Reshape::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  output.data = inputs[0]->data;
}

void Reshape::backward(const OpCall&, const OpBackward& back) const {
  if (back.want_inputs) back.grad_inputs[0].data = back.grad_output.data;
}

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

Transpose::Transpose(std::vector<std::int64_t> permutation)
    : Op({.kind = "transpose", .result = ResultKind::view, .inputs = kNoInput}),
      permutation_(std::move(permutation)) {
  std::vector<bool> seen(permutation_.size());
  for (const std::int64_t axis : permutation_) {
    const bool inside = axis >= 0 && axis < static_cast<std::int64_t>(seen.size());
    if (!inside || seen[axis])
      throw Error("transpose: " + to_string(permutation_) + " is not a permutation of the axes");
    seen[axis] = true;
  }
}

Shape Transpose::output_shape(Shapes inputs) const {
  if (inputs.size() != 1 || inputs[0].size() != permutation_.size()) {
    throw Error("transpose: expected one input of " + std::to_string(permutation_.size()) +
                " axes, got " + (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  Shape shape;
  for (const std::int64_t axis : permutation_) shape.push_back(inputs[0][axis]);
  return shape;
}

void Transpose::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const Shape& y = output.shape;
  strided_copy(y, inputs[0]->data.data(), permuted(permutation_, y), output.data.data(),
               row_major(y));
}

void Transpose::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const Shape& y = back.grad_output.shape;
  strided_copy(y, back.grad_output.data.data(), row_major(y), back.grad_inputs[0].data.data(),
               permuted(permutation_, y));
}

Shape Concat::output_shape(Shapes inputs) const {
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

void Concat::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const std::int64_t axis = checked_axis("concat", axis_, output.shape.size());
  Strides to = row_major(output.shape);
  for (const Tensor* x : inputs) {
    strided_copy(x->shape, x->data.data(), row_major(x->shape), output.data.data(), to);
    to.start += x->shape[axis] * to.steps[axis];
  }
}

void Concat::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const std::int64_t axis = checked_axis("concat", axis_, back.grad_output.shape.size());
  Strides from = row_major(back.grad_output.shape);
  for (Tensor& x : back.grad_inputs) {
    strided_copy(x.shape, back.grad_output.data.data(), from, x.data.data(), row_major(x.shape));
    from.start += x.shape[axis] * from.steps[axis];
  }
}

namespace {

// The chosen box, and where its elements lie in the input.
struct Box {
  Shape extent;
  Strides strides;
};

Box box(const std::vector<SliceRange>& ranges, const Shape& x) {
  Box box{x, row_major(x)};
  std::vector<bool> cut(x.size());
  for (const SliceRange& range : ranges) {
    const std::int64_t axis = checked_axis("slice", range.axis, x.size());
    if (cut[axis]) throw Error("slice: axis " + std::to_string(axis) + " is cut twice");
    cut[axis] = true;
    const std::int64_t size = x[axis], step = range.step;
    // Python's slice.indices: bounds from the end, then clamped to where a walk may begin and stop.
    const auto bound = [&](std::int64_t i) {
      if (i < 0) i = i < -size ? -1 - size : i;
      if (i < 0) i += size;
      return step > 0 ? std::clamp<std::int64_t>(i, 0, size)
                      : std::clamp<std::int64_t>(i, -1, size - 1);
    };
    const std::int64_t start = bound(range.start), end = bound(range.end);
    const std::int64_t length = step > 0 ? end - start : start - end;
    const std::int64_t stride = step > 0 ? step : -std::max(step, -SliceRange::kToTheEnd);
    box.extent[axis] = length <= 0 ? 0 : (length - 1) / stride + 1;
    box.strides.start += start * box.strides.steps[axis];
    // A step that leaves the axis is never taken; a clamped one does not overflow.
    box.strides.steps[axis] *= step > 0 ? std::min(stride, size) : -std::min(stride, size);
  }
  return box;
}

}  // namespace

Slice::Slice(std::vector<SliceRange> ranges)
    : Op({.kind = "slice", .result = ResultKind::view, .inputs = kNoInput}),
      ranges_(std::move(ranges)) {
  for (const SliceRange& range : ranges_) {
    if (range.step == 0)
      throw Error("slice: axis " + std::to_string(range.axis) + " has a step of 0");
  }
}

Shape Slice::output_shape(Shapes inputs) const {
  if (inputs.size() != 1)
    throw Error("slice: expected one input, got " + std::to_string(inputs.size()));
  const Shape shape = box(ranges_, inputs[0]).extent;
  if (element_count(shape) == 0)
    throw Error("slice: the result of input " + to_string(inputs[0]) + " is empty");
  return shape;
}

void Slice::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const Box from = box(ranges_, inputs[0]->shape);
  strided_copy(from.extent, inputs[0]->data.data(), from.strides, output.data.data(),
               row_major(from.extent));
}

void Slice::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const Box to = box(ranges_, back.grad_inputs[0].shape);
  strided_copy(to.extent, back.grad_output.data.data(), row_major(to.extent),
               back.grad_inputs[0].data.data(), to.strides);
}

namespace {

// Where the input's elements lie in the padded tensor.
Strides inside(const std::vector<std::int64_t>& before, const Shape& padded) {
  Strides strides = row_major(padded);
  for (std::size_t i = 0; i < before.size(); ++i) strides.start += before[i] * strides.steps[i];
  return strides;
}

}  // namespace

Pad::Pad(std::vector<std::int64_t> before, std::vector<std::int64_t> after, float value)
    : Op({.kind = "pad", .result = ResultKind::view, .inputs = kNoInput}),
      before_(std::move(before)),
      after_(std::move(after)),
      value_(value) {
  const auto negative = [](std::int64_t n) { return n < 0; };
  if (before_.size() != after_.size() || std::ranges::any_of(before_, negative) ||
      std::ranges::any_of(after_, negative)) {
    throw Error("pad: expected two lists of the same length without negative numbers, got " +
                to_string(before_) + " and " + to_string(after_));
  }
}

Shape Pad::output_shape(Shapes inputs) const {
  if (inputs.size() != 1 || inputs[0].size() != before_.size()) {
    throw Error("pad: expected one input of " + std::to_string(before_.size()) + " axes, got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  Shape shape = inputs[0];
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] += before_[i] + after_[i];
  return shape;
}

void Pad::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  std::fill(output.data.begin(), output.data.end(), value_);
  strided_copy(inputs[0]->shape, inputs[0]->data.data(), row_major(inputs[0]->shape),
               output.data.data(), inside(before_, output.shape));
}

void Pad::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const Shape& x = back.grad_inputs[0].shape;
  strided_copy(x, back.grad_output.data.data(), inside(before_, back.grad_output.shape),
               back.grad_inputs[0].data.data(), row_major(x));
}

Constant::Constant(Tensor value, bool trained)
    : Op({.kind = "constant", .result = ResultKind::view, .inputs = kNoInput}) {
  // No initial value may replace it: fan_in is negative.
  parameters_.push_back(
      {.name = "value", .value = std::move(value), .fan_in = -1, .trained = trained});
}

Shape Constant::output_shape(Shapes inputs) const {
  if (!inputs.empty())
    throw Error("constant: expected no inputs, got " + std::to_string(inputs.size()));
  return parameters_[0].value.shape;
}

void Constant::forward(const OpCall&, OpInputs, Tensor& output) const {
  output.data = parameters_[0].value.data;
}

void Constant::backward(const OpCall&, const OpBackward& back) const {
  if (!back.grad_parameters[0].empty()) back.grad_parameters[0].data = back.grad_output.data;
}

}  // namespace numemu::net
