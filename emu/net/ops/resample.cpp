// Resampling one axis after the other, and the transposed sums in backward.
#include "emu/net/ops/resample.hpp"

#include <algorithm>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// The input seen as [outer, axis, inner].
struct View {
  std::int64_t outer = 1, extent = 1, inner = 1;
};

View view_of(const Shape& shape, std::int64_t axis) {
  View view{1, shape[static_cast<std::size_t>(axis)], 1};
  for (std::int64_t i = 0; i < axis; ++i) view.outer *= shape[static_cast<std::size_t>(i)];
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < shape.size(); ++i)
    view.inner *= shape[i];
  return view;
}

/// One axis forward, or with `back` the transposed map: `x` of the shape before the pass, or after
/// it. Replaces x and its shape.
void pass(const Resampling& axis, bool back, std::int64_t before, std::vector<double>& x,
          Shape& shape) {
  const View view = view_of(shape, axis.axis);
  const std::int64_t extent = back ? before : axis.extent(), inner = view.inner;
  std::vector<double> y(static_cast<std::size_t>(view.outer * extent * inner));
  const double* const from = x.data();
  double* const to = y.data();
  for_each_row(view.outer, extent * inner * axis.taps, [&](std::int64_t o) {
    for (std::int64_t i = 0; i < std::ssize(axis.places); ++i) {
      const std::int64_t result = i / axis.taps, place = axis.places[i];
      const double weight = axis.weights[i];
      const double* const source = from + (o * view.extent + (back ? result : place)) * inner;
      double* const target = to + (o * extent + (back ? place : result)) * inner;
      for (std::int64_t c = 0; c < inner; ++c) target[c] += weight * source[c];
    }
  });
  x = std::move(y);
  shape[static_cast<std::size_t>(axis.axis)] = extent;
}

}  // namespace

Resample::Resample(std::vector<Resampling> axes) : axes_(std::move(axes)) {
  for (const Resampling& axis : axes_) {
    const bool fits = axis.taps >= 1 && !axis.places.empty() &&
                      std::ssize(axis.places) % axis.taps == 0 &&
                      axis.weights.size() == axis.places.size();
    if (!fits || std::ranges::any_of(axis.places, [](std::int64_t place) { return place < 0; }))
      throw Error("resample: expected a place and a weight for every tap of every result");
  }
}

Shape Resample::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1)
    throw Error("resample: expected one input, got " + std::to_string(inputs.size()));
  Shape shape = inputs[0];
  for (const Resampling& axis : axes_) {
    const auto at = static_cast<std::size_t>(axis.axis);
    if (axis.axis < 0 || at >= shape.size() || *std::ranges::max_element(axis.places) >= shape[at])
      throw Error("resample: axis " + std::to_string(axis.axis) + " of " + to_string(inputs[0]) +
                  " lacks elements that are read");
    shape[at] = axis.extent();
  }
  return shape;
}

void Resample::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  std::vector<double> x(inputs[0]->data.begin(), inputs[0]->data.end());
  Shape shape = inputs[0]->shape;
  for (const Resampling& axis : axes_) pass(axis, false, 0, x, shape);
  for (std::size_t i = 0; i < x.size(); ++i) output.data[i] = neutral(static_cast<float>(x[i]));
}

void Resample::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                        const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                        bool want_inputs) const {
  if (!want_inputs) return;
  std::vector<double> g(grad_output.data.begin(), grad_output.data.end());
  Shape shape = grad_output.shape;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    const auto axis = static_cast<std::size_t>(axes_[i].axis);
    // What the axis had before this pass: an earlier pass may have changed it.
    std::int64_t before = grad_inputs[0].shape[axis];
    for (std::size_t k = 0; k < i; ++k) {
      if (axes_[k].axis == axes_[i].axis) before = axes_[k].extent();
    }
    pass(axes_[i], true, before, g, shape);
  }
  for (std::size_t i = 0; i < g.size(); ++i)
    grad_inputs[0].data[i] = neutral(static_cast<float>(g[i]));
}

// Two tensors of float64 at a time.
OperatorMemory Resample::memory(std::span<const Shape> inputs) const {
  Shape shape = inputs[0];
  std::int64_t most = element_count(shape), last = most;
  for (const Resampling& axis : axes_) {
    shape[static_cast<std::size_t>(axis.axis)] = axis.extent();
    const std::int64_t next = element_count(shape);
    most = std::max(most, last + next);
    last = next;
  }
  return {.forward = 2 * most, .backward = 2 * most};
}

}  // namespace numemu::net
