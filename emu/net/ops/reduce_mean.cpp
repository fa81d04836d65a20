// Means over axes: sums over the fixed tree, one division; the gradient spreads evenly.
#include "emu/net/ops/reduce_mean.hpp"

#include "emu/net/ops/axis_sums.hpp"
#include "emu/net/ops/broadcast.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {

ReduceMean::ReduceMean(std::vector<std::int64_t> axes, bool keep)
    : axes_(std::move(axes)), keep_(keep) {}

std::vector<bool> ReduceMean::reduced(const Shape& x) const {
  const auto rank = static_cast<std::int64_t>(x.size());
  std::vector<bool> marks(x.size(), axes_.empty());
  for (const std::int64_t axis : axes_) {
    const std::int64_t i = axis < 0 ? axis + rank : axis;
    if (i < 0 || i >= rank || marks[i]) {
      throw Error("reduce_mean: expected different axes of " + to_string(x) + ", got axis " +
                  std::to_string(axis));
    }
    marks[i] = true;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (marks[i] && x[i] == 0) {
      throw Error("reduce_mean: expected elements along every axis it reduces, got " +
                  to_string(x));
    }
  }
  return marks;
}

Shape ReduceMean::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1)
    throw Error("reduce_mean: expected one input, got " + std::to_string(inputs.size()));
  const std::vector<bool> marks = reduced(inputs[0]);
  Shape shape;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (!marks[i]) shape.push_back(inputs[0][i]);
    if (marks[i] && keep_) shape.push_back(1);
  }
  return shape;
}

void ReduceMean::forward(const OpCall&, std::span<const Tensor* const> inputs,
                         Tensor& output) const {
  const Tensor& x = *inputs[0];
  if (output.empty()) return;
  const auto count = static_cast<double>(x.size() / output.size());
  const std::vector<double> sums = axis_sums(x.data.data(), x.shape, reduced(x.shape));
  for (std::size_t i = 0; i < sums.size(); ++i)
    output.data[i] = neutral(static_cast<float>(sums[i] / count));
}

void ReduceMean::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                          const Tensor& grad_output, std::span<Tensor> grad_inputs,
                          std::span<Tensor>, bool want_inputs) const {
  if (!want_inputs || grad_inputs[0].empty()) return;
  Tensor& dx = grad_inputs[0];
  const std::vector<bool> marks = reduced(dx.shape);
  Shape kept = dx.shape;
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = marks[i] ? 1 : kept[i];
  const auto count = static_cast<float>(dx.size() / grad_output.size());
  Tensor share = grad_output;
  for (float& g : share.data) g = neutral(g / count);
  const std::array<Shape, 2> shapes{kept, dx.shape};
  const std::array<const float*, 2> data{share.data.data(), nullptr};
  float* const out = dx.data.data();
  Broadcast("reduce_mean", shapes)
      .for_each_run(data, [=](std::int64_t first, std::int64_t n, const Broadcast::Runs& runs) {
        std::copy_n(runs[0], n, out + first);
      });
}

}  // namespace numemu::net
