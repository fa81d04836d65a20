// The broadcast of shapes, and the loops of operators of two inputs.
#include "emu/net/ops/broadcast.hpp"

#include "emu/net/ops/axis_sums.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

// The shape all inputs are repeated to.
Shape common_shape(std::string_view what, std::span<const Shape> inputs) {
  std::size_t rank = 0;
  for (const Shape& shape : inputs) rank = std::max(rank, shape.size());
  Shape common(rank, 1);
  for (const Shape& shape : inputs) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      std::int64_t& extent = common[rank - shape.size() + i];
      if (shape[i] == 1 || shape[i] == extent) continue;
      if (extent == 1) {
        extent = shape[i];
        continue;
      }
      std::string list;
      for (const Shape& s : inputs) list += (list.empty() ? "" : ", ") + to_string(s);
      throw Error(
          std::string(what) +
          ": expected shapes that broadcast (equal extents or 1 from the last axis on), got " +
          list);
    }
  }
  return common;
}

}  // namespace

Broadcast::Broadcast(std::string_view what, std::span<const Shape> inputs) {
  if (inputs.empty() || inputs.size() > kInputs) {
    throw Error(std::string(what) + ": expected 1 to " + std::to_string(kInputs) + " inputs, got " +
                std::to_string(inputs.size()));
  }
  shape_ = common_shape(what, inputs);
  std::vector<Axis> axes;  // outermost last
  Offsets sizes;           // of what is inside the current axis
  sizes.fill(1);
  for (std::size_t i = shape_.size(); i-- > 0;) {
    if (shape_[i] == 1) continue;
    Axis axis{shape_[i], {}};
    bool merges = !axes.empty();
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const std::size_t missing = shape_.size() - inputs[k].size();
      if (i >= missing && inputs[k][i - missing] != 1) {
        axis.strides[k] = sizes[k];
        sizes[k] *= shape_[i];
      }
      merges = merges && (axes.back().strides[k] == 0) == (axis.strides[k] == 0);
    }
    if (merges) {
      axes.back().extent *= axis.extent;
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) return;
  inner_ = axes.front();
  outer_.assign(axes.rbegin(), axes.rend() - 1);
}

Shape Binary::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 2) {
    throw Error(std::string(kind()) + ": expected two inputs, got " +
                std::to_string(inputs.size()));
  }
  return Broadcast(kind(), inputs).shape();
}

void Binary::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  const std::array<Shape, 2> shapes{inputs[0]->shape, inputs[1]->shape};
  const std::array<const float*, 2> data{inputs[0]->data.data(), inputs[1]->data.data()};
  float* const y = output.data.data();
  Broadcast(kind(), shapes)
      .for_each_run(data, [&](std::int64_t first, std::int64_t n, const Broadcast::Runs& runs) {
        values(n, runs[0], runs[1], y + first);
      });
}

void Binary::backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor*,
                      const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                      bool want_inputs) const {
  if (!want_inputs) return;
  const std::array<Shape, 3> shapes{grad_inputs[0].shape, grad_inputs[1].shape, grad_output.shape};
  std::array<const float*, 3> data{nullptr, nullptr, grad_output.data.data()};
  std::array<Tensor, 2> repeated;  // gradients before their sums
  std::array<float*, 2> gradient;
  for (int k = 0; k < 2; ++k) {
    if (sees_inputs_) data[k] = inputs[k]->data.data();
    const bool whole = grad_inputs[k].size() == grad_output.size();
    if (!whole) repeated[k] = Tensor(grad_output.shape);
    gradient[k] = whole ? grad_inputs[k].data.data() : repeated[k].data.data();
  }
  Broadcast(kind(), shapes)
      .for_each_run(data, [&](std::int64_t first, std::int64_t n, const Broadcast::Runs& runs) {
        gradients(n, runs[0], runs[1], runs[2], gradient[0] + first, gradient[1] + first);
      });
  for (int k = 0; k < 2; ++k) {
    if (!repeated[k].shape.empty()) sum_to(repeated[k], grad_inputs[k]);
  }
}

}  // namespace numemu::net
