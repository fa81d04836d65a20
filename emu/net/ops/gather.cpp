// Gather: the input is seen as [before, axis, after]; whole runs of `after` elements move.
#include "emu/net/ops/gather.hpp"

#include <cstring>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/strided_copy.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

// Sizes around an axis, and the chosen positions counted from the front.
struct Plan {
  std::int64_t axis, before, size, after;
  std::vector<std::int64_t> chosen;
};

Plan plan(std::int64_t axis, const std::vector<std::int64_t>& indices, const Shape& x) {
  const std::int64_t place = checked_axis("gather", axis, x.size());
  Plan plan{place, 1, x[place], 1, indices};
  for (std::int64_t i = 0; i < place; ++i) plan.before *= x[i];
  for (std::size_t i = place + 1; i < x.size(); ++i) plan.after *= x[i];
  for (std::int64_t& index : plan.chosen) {
    if (index < -plan.size || index >= plan.size) {
      throw Error("gather: index " + std::to_string(index) + " of axis " + std::to_string(place) +
                  " of " + to_string(x));
    }
    if (index < 0) index += plan.size;
  }
  return plan;
}

}  // namespace

Gather::Gather(std::int64_t axis, std::vector<std::int64_t> indices)
    : Gather(axis, indices, {static_cast<std::int64_t>(indices.size())}) {}

Gather::Gather(std::int64_t axis, std::vector<std::int64_t> indices, Shape index_shape)
    : axis_(axis), indices_(std::move(indices)), index_shape_(std::move(index_shape)) {
  if (indices_.empty() ||
      element_count(index_shape_) != static_cast<std::int64_t>(indices_.size())) {
    throw Error("gather: expected at least one index and as many as the shape " +
                to_string(index_shape_) + " has, got " + std::to_string(indices_.size()));
  }
}

Shape Gather::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1)
    throw Error("gather: expected one input, got " + std::to_string(inputs.size()));
  const std::int64_t axis = plan(axis_, indices_, inputs[0]).axis;
  Shape shape(inputs[0].begin(), inputs[0].begin() + axis);
  shape.insert(shape.end(), index_shape_.begin(), index_shape_.end());
  shape.insert(shape.end(), inputs[0].begin() + axis + 1, inputs[0].end());
  return shape;
}

void Gather::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  const Plan p = plan(axis_, indices_, inputs[0]->shape);
  const float* const x = inputs[0]->data.data();  // [before, size, after]
  float* const y = output.data.data();            // [before, chosen, after]
  const std::int64_t count = static_cast<std::int64_t>(p.chosen.size());
  for_each_row(p.before, count * p.after, [&](std::int64_t b) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(y + (b * count + i) * p.after, x + (b * p.size + p.chosen[i]) * p.after,
                  static_cast<std::size_t>(p.after) * sizeof(float));
    }
  });
}

void Gather::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                      const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                      bool want_inputs) const {
  if (!want_inputs) return;
  const Plan p = plan(axis_, indices_, grad_inputs[0].shape);
  const float* const g = grad_output.data.data();  // [before, chosen, after]
  float* const grad = grad_inputs[0].data.data();  // [before, size, after], zero on entry
  const std::int64_t count = static_cast<std::int64_t>(p.chosen.size());
  for_each_row(p.before, count * p.after, [&](std::int64_t b) {
    for (std::int64_t i = 0; i < count; ++i) {
      const float* const from = g + (b * count + i) * p.after;
      float* const to = grad + (b * p.size + p.chosen[i]) * p.after;
      for (std::int64_t a = 0; a < p.after; ++a) to[a] = neutral(to[a] + from[a]);
    }
  });
}

}  // namespace numemu::net
