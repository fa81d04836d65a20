// Slice: a strided copy out of the tensor, and back into zeros.
#include "emu/net/ops/slice.hpp"

#include <algorithm>

#include "emu/net/ops/strided_copy.hpp"
#include "formats/error.hpp"

namespace numemu::net {
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

Slice::Slice(std::vector<SliceRange> ranges) : ranges_(std::move(ranges)) {
  for (const SliceRange& range : ranges_) {
    if (range.step == 0)
      throw Error("slice: axis " + std::to_string(range.axis) + " has a step of 0");
  }
}

Shape Slice::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1)
    throw Error("slice: expected one input, got " + std::to_string(inputs.size()));
  const Shape shape = box(ranges_, inputs[0]).extent;
  if (element_count(shape) == 0)
    throw Error("slice: the result of input " + to_string(inputs[0]) + " is empty");
  return shape;
}

void Slice::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  const Box from = box(ranges_, inputs[0]->shape);
  strided_copy(from.extent, inputs[0]->data.data(), from.strides, output.data.data(),
               row_major(from.extent));
}

void Slice::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                     const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                     bool want_inputs) const {
  if (!want_inputs) return;
  const Box to = box(ranges_, grad_inputs[0].shape);
  strided_copy(to.extent, grad_output.data.data(), row_major(to.extent), grad_inputs[0].data.data(),
               to.strides);
}

}  // namespace numemu::net
