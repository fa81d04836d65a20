// Every index gives the place of one run of data elements; runs are copied or added.
#include "emu/net/ops/indexed.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/strided_copy.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

[[noreturn]] void refuse(const Shape& data, const Shape& indices) {
  throw Error("indices " + to_string(indices) + " do not fit data " + to_string(data));
}

/// The shape of what the indices choose.
Shape chosen_shape(const IndexedOptions& o, const Shape& data, const Shape& indices) {
  if (o.indexing == Indexing::tuples) {
    const auto batch = static_cast<std::size_t>(o.batch_axes);
    if (o.batch_axes < 0 || indices.empty() || batch >= indices.size() || batch >= data.size() ||
        !std::equal(data.begin(), data.begin() + o.batch_axes, indices.begin()) ||
        indices.back() < 1 || indices.back() > std::ssize(data) - o.batch_axes)
      refuse(data, indices);
    Shape shape(indices.begin(), indices.end() - 1);
    shape.insert(shape.end(), data.begin() + o.batch_axes + indices.back(), data.end());
    return shape;
  }
  const auto axis = static_cast<std::size_t>(checked_axis("indices", o.axis, data.size()));
  if (o.indexing == Indexing::elements) {
    if (indices.size() != data.size()) refuse(data, indices);
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (i != axis && indices[i] > data[i]) refuse(data, indices);
    }
    return indices;
  }
  Shape shape(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), data.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.end());
  return shape;
}

/// Runs of `length` chosen elements: run r lies at starts[r] in the data.
struct Runs {
  std::int64_t length = 1;
  std::vector<std::int64_t> starts;
};

std::int64_t checked_index(std::string_view layer, const Tensor& indices, std::size_t i,
                           std::int64_t extent) {
  const float value = indices.data[i];
  const bool inside = value >= -static_cast<float>(extent) && value < static_cast<float>(extent);
  if (!inside || value != static_cast<float>(static_cast<std::int64_t>(value))) {
    throw Error(std::string(layer) + ": index " + std::to_string(i) +
                ": expected a whole number from " + std::to_string(-extent) + " to " +
                std::to_string(extent - 1) + ", got " + std::to_string(value));
  }
  const auto index = static_cast<std::int64_t>(value);
  return index < 0 ? index + extent : index;
}

Runs runs_of(std::string_view layer, const IndexedOptions& o, const Shape& data,
             const Tensor& indices) {
  Runs runs;
  const Strides steps = row_major(data);
  if (o.indexing == Indexing::tuples) {
    const std::int64_t depth = indices.shape.back();
    const auto first = static_cast<std::size_t>(o.batch_axes);
    runs.length = steps.steps[first + static_cast<std::size_t>(depth) - 1];
    std::int64_t batches = 1;
    for (std::size_t i = 0; i < first; ++i) batches *= data[i];
    const std::int64_t tuples = indices.size() / depth,
                       each = tuples / std::max<std::int64_t>(1, batches);
    const std::int64_t sample = first == 0 ? 0 : steps.steps[first - 1];
    for (std::int64_t t = 0; t < tuples; ++t) {
      std::int64_t at = t / each * sample;
      for (std::int64_t d = 0; d < depth; ++d) {
        const std::size_t axis = first + static_cast<std::size_t>(d);
        at += checked_index(layer, indices, static_cast<std::size_t>(t * depth + d), data[axis]) *
              steps.steps[axis];
      }
      runs.starts.push_back(at);
    }
    return runs;
  }
  const auto axis = static_cast<std::size_t>(checked_axis("indices", o.axis, data.size()));
  const std::int64_t step = steps.steps[axis];
  if (o.indexing == Indexing::rows) {
    std::int64_t outer = 1;
    for (std::size_t i = 0; i < axis; ++i) outer *= data[i];
    runs.length = step;
    for (std::int64_t b = 0; b < outer; ++b) {
      for (std::size_t i = 0; i < indices.data.size(); ++i)
        runs.starts.push_back((b * data[axis] + checked_index(layer, indices, i, data[axis])) *
                              step);
    }
    return runs;
  }
  for (std::size_t i = 0; i < indices.data.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i);
    std::int64_t at = checked_index(layer, indices, i, data[axis]) * step;
    for (std::size_t a = data.size(); a-- > 0; rest /= indices.shape[a]) {
      if (a != axis) at += rest % indices.shape[a] * steps.steps[a];
    }
    runs.starts.push_back(at);
  }
  return runs;
}

void copy_chosen(const Runs& runs, const float* from, float* to) {
  const std::int64_t n = runs.length;
  for_each_row(std::ssize(runs.starts), n, [&](std::int64_t r) {
    std::memcpy(to + r * n, from + runs.starts[r], static_cast<std::size_t>(n) * sizeof(float));
  });
}

/// In the order of the indices: equal ones meet at one place.
void add_chosen(const Runs& runs, const float* from, float* to) {
  for (std::size_t r = 0; r < runs.starts.size(); ++r) {
    const float* const source = from + static_cast<std::int64_t>(r) * runs.length;
    float* const target = to + runs.starts[r];
    for (std::int64_t i = 0; i < runs.length; ++i) target[i] = neutral(target[i] + source[i]);
  }
}

}  // namespace

Shape IndexedGather::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 2)
    throw Error("indexed_gather: expected two inputs, got " + std::to_string(inputs.size()));
  return chosen_shape(options_, inputs[0], inputs[1]);
}

void IndexedGather::forward(const OpCall& call, std::span<const Tensor* const> inputs,
                            Tensor& output) const {
  copy_chosen(runs_of(call.layer, options_, inputs[0]->shape, *inputs[1]), inputs[0]->data.data(),
              output.data.data());
}

void IndexedGather::backward(const OpCall& call, std::span<const Tensor* const> inputs,
                             const Tensor*, const Tensor& grad_output,
                             std::span<Tensor> grad_inputs, std::span<Tensor>,
                             bool want_inputs) const {
  if (!want_inputs) return;
  add_chosen(runs_of(call.layer, options_, grad_inputs[0].shape, *inputs[1]),
             grad_output.data.data(), grad_inputs[0].data.data());
}

Shape IndexedScatter::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 3)
    throw Error("indexed_scatter: expected three inputs, got " + std::to_string(inputs.size()));
  const Shape chosen = chosen_shape(options_, inputs[0], inputs[1]);
  if (inputs[2] != chosen) {
    throw Error("indexed_scatter: expected updates " + to_string(chosen) + ", got " +
                to_string(inputs[2]));
  }
  return inputs[0];
}

void IndexedScatter::forward(const OpCall& call, std::span<const Tensor* const> inputs,
                             Tensor& output) const {
  const Runs runs = runs_of(call.layer, options_, inputs[0]->shape, *inputs[1]);
  output.data = inputs[0]->data;
  const float* const updates = inputs[2]->data.data();
  if (adds_) return add_chosen(runs, updates, output.data.data());
  for (std::size_t r = 0; r < runs.starts.size(); ++r) {
    std::memcpy(output.data.data() + runs.starts[r],
                updates + static_cast<std::int64_t>(r) * runs.length,
                static_cast<std::size_t>(runs.length) * sizeof(float));
  }
}

void IndexedScatter::backward(const OpCall& call, std::span<const Tensor* const> inputs,
                              const Tensor*, const Tensor& grad_output,
                              std::span<Tensor> grad_inputs, std::span<Tensor>,
                              bool want_inputs) const {
  if (!want_inputs) return;
  const Runs runs = runs_of(call.layer, options_, grad_output.shape, *inputs[1]);
  const std::int64_t n = runs.length;
  grad_inputs[0].data = grad_output.data;
  float* const data = grad_inputs[0].data.data();
  float* const updates = grad_inputs[2].data.data();
  if (adds_) return copy_chosen(runs, grad_output.data.data(), updates);
  // Backwards: a place that a later update holds has no gradient left for an earlier one.
  for (std::size_t r = runs.starts.size(); r-- > 0;) {
    for (std::int64_t i = 0; i < n; ++i) {
      float& g = data[runs.starts[r] + i];
      updates[static_cast<std::int64_t>(r) * n + i] = std::exchange(g, 0.0f);
    }
  }
}

}  // namespace numemu::net
