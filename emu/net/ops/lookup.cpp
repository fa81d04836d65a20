// Every number gives the place of a run of elements; runs are copied there and added back.
#include "emu/net/ops/lookup.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {
namespace {

// Sizes around an axis, and the chosen positions counted from the front.
struct LookupPlan {
  std::int64_t axis, before, size, after;
  std::vector<std::int64_t> chosen;
};

LookupPlan plan(std::int64_t axis, const std::vector<std::int64_t>& indices, const Shape& x) {
  const std::int64_t place = checked_axis("gather", axis, x.size());
  LookupPlan plan{place, 1, x[place], 1, indices};
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
    : Op({.kind = "gather", .result = ResultKind::view, .inputs = kNoInput}),
      axis_(axis),
      indices_(std::move(indices)),
      index_shape_(std::move(index_shape)) {
  if (indices_.empty() ||
      element_count(index_shape_) != static_cast<std::int64_t>(indices_.size())) {
    throw Error("gather: expected at least one index and as many as the shape " +
                to_string(index_shape_) + " has, got " + std::to_string(indices_.size()));
  }
}

Shape Gather::output_shape(Shapes inputs) const {
  if (inputs.size() != 1)
    throw Error("gather: expected one input, got " + std::to_string(inputs.size()));
  const std::int64_t axis = plan(axis_, indices_, inputs[0]).axis;
  Shape shape(inputs[0].begin(), inputs[0].begin() + axis);
  shape.insert(shape.end(), index_shape_.begin(), index_shape_.end());
  shape.insert(shape.end(), inputs[0].begin() + axis + 1, inputs[0].end());
  return shape;
}

void Gather::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const LookupPlan p = plan(axis_, indices_, inputs[0]->shape);
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

void Gather::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const LookupPlan p = plan(axis_, indices_, back.grad_inputs[0].shape);
  const float* const g = back.grad_output.data.data();  // [before, chosen, after]
  float* const grad = back.grad_inputs[0].data.data();  // [before, size, after], zero on entry
  const std::int64_t count = static_cast<std::int64_t>(p.chosen.size());
  for_each_row(p.before, count * p.after, [&](std::int64_t b) {
    for (std::int64_t i = 0; i < count; ++i) {
      const float* const from = g + (b * count + i) * p.after;
      float* const to = grad + (b * p.size + p.chosen[i]) * p.after;
      for (std::int64_t a = 0; a < p.after; ++a) to[a] = neutral(to[a] + from[a]);
    }
  });
}

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

/// Throws Error where a sample's index names a row of another one.
void require_own_rows(std::string_view layer, const IndexedOptions& o, const Shape& data,
                      const Tensor& indices) {
  const auto axis = static_cast<std::size_t>(checked_axis("indices", o.axis, data.size())),
             of_samples = static_cast<std::size_t>(o.sample_axis);
  const std::int64_t samples = std::max<std::int64_t>(1, data[axis] / o.sample_rows),
                     step = row_major(indices.shape).steps[of_samples],
                     extent = indices.shape[of_samples],
                     each = std::max<std::int64_t>(1, extent / samples);
  for (std::size_t i = 0; i < indices.data.size(); ++i) {
    const std::int64_t row = checked_index(layer, indices, i, data[axis]),
                       sample = static_cast<std::int64_t>(i) / step % extent / each;
    if (row / o.sample_rows == sample) continue;
    throw Error(std::string(layer) + ": index " +
                std::to_string(static_cast<std::int64_t>(indices.data[i])) + " of sample " +
                std::to_string(sample) + " of the batch names row " + std::to_string(row) +
                ", of sample " + std::to_string(row / o.sample_rows) +
                ": a sample reads its own rows; in batches of 1 each runs alone");
  }
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
    if (o.sample_rows > 0) require_own_rows(layer, o, data, indices);
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

Shape IndexedGather::output_shape(Shapes inputs) const {
  if (inputs.size() != 2)
    throw Error("indexed_gather: expected two inputs, got " + std::to_string(inputs.size()));
  return chosen_shape(options_, inputs[0], inputs[1]);
}

void IndexedGather::forward(const OpCall& call, OpInputs inputs, Tensor& output) const {
  copy_chosen(runs_of(call.layer, options_, inputs[0]->shape, *inputs[1]), inputs[0]->data.data(),
              output.data.data());
}

void IndexedGather::backward(const OpCall& call, const OpBackward& back) const {
  if (!back.want_inputs) return;
  add_chosen(runs_of(call.layer, options_, back.grad_inputs[0].shape, *back.inputs[1]),
             back.grad_output.data.data(), back.grad_inputs[0].data.data());
}

Shape IndexedScatter::output_shape(Shapes inputs) const {
  if (inputs.size() != 3)
    throw Error("indexed_scatter: expected three inputs, got " + std::to_string(inputs.size()));
  const Shape chosen = chosen_shape(options_, inputs[0], inputs[1]);
  if (inputs[2] != chosen) {
    throw Error("indexed_scatter: expected updates " + to_string(chosen) + ", got " +
                to_string(inputs[2]));
  }
  return inputs[0];
}

void IndexedScatter::forward(const OpCall& call, OpInputs inputs, Tensor& output) const {
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

void IndexedScatter::backward(const OpCall& call, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const Runs runs = runs_of(call.layer, options_, back.grad_output.shape, *back.inputs[1]);
  const std::int64_t n = runs.length;
  back.grad_inputs[0].data = back.grad_output.data;
  float* const data = back.grad_inputs[0].data.data();
  float* const updates = back.grad_inputs[2].data.data();
  if (adds_) return copy_chosen(runs, back.grad_output.data.data(), updates);
  // Backwards: a place that a later update holds has no gradient left for an earlier one.
  for (std::size_t r = runs.starts.size(); r-- > 0;) {
    for (std::int64_t i = 0; i < n; ++i) {
      float& g = data[runs.starts[r] + i];
      updates[static_cast<std::int64_t>(r) * n + i] = std::exchange(g, 0.0f);
    }
  }
}

namespace {

void require_rows(std::int64_t count, std::int64_t width) {
  constexpr std::int64_t kWholeFloats = std::int64_t{1} << 24;
  if (count < 1 || width < 1 || count > kWholeFloats) {
    throw Error("embedding: expected 1 to 2^24 rows of at least one element, got " +
                std::to_string(count) + " of " + std::to_string(width));
  }
}

}  // namespace

Embedding::Embedding(std::int64_t count, std::int64_t width)
    : Op({.kind = "embedding", .inputs = every_input(Use::index)}), count_(count), width_(width) {
  require_rows(count, width);
  parameters_.push_back({"weight", Tensor({count, width}), width});
}

Embedding::Embedding(Tensor table)
    : Op({.kind = "embedding", .inputs = every_input(Use::index)}),
      count_(table.dim(0)),
      width_(table.dim(1)) {
  require_rows(count_, width_);
  parameters_.push_back({"weight", std::move(table), width_});
}

Shape Embedding::output_shape(Shapes inputs) const {
  if (inputs.size() != 1 || inputs[0].empty()) {
    throw Error("embedding: expected one input [batch, ...] of row numbers, got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  Shape shape = inputs[0];
  shape.push_back(width_);
  return shape;
}

std::vector<std::int64_t> Embedding::row_numbers(std::string_view layer, const Tensor& x) const {
  std::vector<std::int64_t> numbers(x.data.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float number = x.data[i];
    const bool inside = number >= 0 && number < static_cast<float>(count_);
    if (!inside || number != static_cast<float>(static_cast<std::int64_t>(number))) {
      throw Error(std::string(layer) + ": embedding: expected at element " + std::to_string(i) +
                  " a whole number from 0 to " + std::to_string(count_ - 1) + ", got " +
                  std::to_string(number));
    }
    numbers[i] = static_cast<std::int64_t>(number);
  }
  return numbers;
}

void Embedding::forward(const OpCall& call, OpInputs inputs, Tensor& output) const {
  const std::vector<std::int64_t> numbers = row_numbers(call.layer, *inputs[0]);
  const SharedTensor read = call.numerics.table(call.step, call.layer, parameters_[0].value);
  const float* const table = (read ? *read : parameters_[0].value).data.data();
  float* const y = output.data.data();
  const std::int64_t width = width_;
  for_each_row(static_cast<std::int64_t>(numbers.size()), width, [&](std::int64_t i) {
    std::memcpy(y + i * width, table + numbers[i] * width, width * sizeof(float));
  });
}

void Embedding::backward(const OpCall& call, const OpBackward& back) const {
  if (back.grad_parameters[0].empty()) return;
  const std::vector<std::int64_t> numbers = row_numbers(call.layer, *back.inputs[0]);
  // Readers of row r, ascending: readers[first[r]] to readers[first[r + 1] - 1].
  std::vector<std::int64_t> first(static_cast<std::size_t>(count_ + 1)), readers(numbers.size());
  for (const std::int64_t row : numbers) ++first[row + 1];
  for (std::int64_t r = 0; r < count_; ++r) first[r + 1] += first[r];
  std::vector<std::int64_t> next = first;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    readers[next[numbers[i]]++] = static_cast<std::int64_t>(i);

  const float* const g = back.grad_output.data.data();
  float* const gradient = back.grad_parameters[0].data.data();
  const std::int64_t width = width_;
  const std::int64_t work = back.grad_output.size() / count_ + width;  // of a row, on average
  for_each_row(count_, work, [&](std::int64_t row) {
    const std::int64_t* const mine = readers.data() + first[row];
    for (std::int64_t c = 0; c < width; ++c) {
      gradient[row * width + c] =
          neutral(static_cast<float>(pairwise_sum(first[row + 1] - first[row], [=](std::int64_t i) {
            return double{g[mine[i] * width + c]};
          })));
    }
  });
}

PositionEmbedding::PositionEmbedding(std::int64_t length, std::int64_t width)
    : Op({.kind = "position_embedding", .inputs = kNoInput}), length_(length), width_(width) {
  if (length < 1 || width < 1)
    throw Error("position_embedding: the length and the width must be positive");
  // Of the same scale as the rows of an Embedding.
  parameters_.push_back({"weight", Tensor({length, width}), width});
}

Shape PositionEmbedding::output_shape(Shapes inputs) const {
  if (inputs.size() != 1 || inputs[0].size() != 3 || inputs[0][1] != length_ ||
      inputs[0][2] != width_) {
    throw Error("position_embedding: expected one input [batch, " + std::to_string(length_) + ", " +
                std::to_string(width_) + "], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  return inputs[0];
}

void PositionEmbedding::forward(const OpCall& call, OpInputs inputs, Tensor& output) const {
  const SharedTensor read = call.numerics.table(call.step, call.layer, parameters_[0].value);
  output.data = inputs[0]->data;
  add_bias(read ? *read : parameters_[0].value, output);
}

void PositionEmbedding::backward(const OpCall&, const OpBackward& back) const {
  bias_gradient(back.grad_output, back.grad_parameters[0]);
  if (back.want_inputs) back.grad_inputs[0].data = back.grad_output.data;
}

}  // namespace numemu::net
