// Embedding: readers of a row are listed once, so that its gradient is one pairwise sum.
#include "emu/net/ops/embedding.hpp"

#include <cstring>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {

namespace {

void require_rows(std::int64_t count, std::int64_t width) {
  constexpr std::int64_t kWholeFloats = std::int64_t{1} << 24;
  if (count < 1 || width < 1 || count > kWholeFloats) {
    throw Error("embedding: expected 1 to 2^24 rows of at least one element, got " +
                std::to_string(count) + " of " + std::to_string(width));
  }
}

}  // namespace

Embedding::Embedding(std::int64_t count, std::int64_t width) : count_(count), width_(width) {
  require_rows(count, width);
  parameters_.push_back({"weight", Tensor({count, width}), width});
}

Embedding::Embedding(Tensor table) : count_(table.dim(0)), width_(table.dim(1)) {
  require_rows(count_, width_);
  parameters_.push_back({"weight", std::move(table), width_});
}

Shape Embedding::output_shape(std::span<const Shape> inputs) const {
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

void Embedding::forward(const OpCall& call, std::span<const Tensor* const> inputs,
                        Tensor& output) const {
  const std::vector<std::int64_t> numbers = row_numbers(call.layer, *inputs[0]);
  const SharedTensor read = call.numerics.table(call.step, call.layer, parameters_[0].value);
  const float* const table = (read ? *read : parameters_[0].value).data.data();
  float* const y = output.data.data();
  const std::int64_t width = width_;
  for_each_row(static_cast<std::int64_t>(numbers.size()), width, [&](std::int64_t i) {
    std::memcpy(y + i * width, table + numbers[i] * width, width * sizeof(float));
  });
}

void Embedding::backward(const OpCall& call, std::span<const Tensor* const> inputs, const Tensor*,
                         const Tensor& grad_output, std::span<Tensor>,
                         std::span<Tensor> grad_parameters, bool) const {
  if (grad_parameters[0].empty()) return;
  const std::vector<std::int64_t> numbers = row_numbers(call.layer, *inputs[0]);
  // Readers of row r, ascending: readers[first[r]] to readers[first[r + 1] - 1].
  std::vector<std::int64_t> first(static_cast<std::size_t>(count_ + 1)), readers(numbers.size());
  for (const std::int64_t row : numbers) ++first[row + 1];
  for (std::int64_t r = 0; r < count_; ++r) first[r + 1] += first[r];
  std::vector<std::int64_t> next = first;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    readers[next[numbers[i]]++] = static_cast<std::int64_t>(i);

  const float* const g = grad_output.data.data();
  float* const gradient = grad_parameters[0].data.data();
  const std::int64_t width = width_;
  const std::int64_t work = grad_output.size() / count_ + width;  // of a row, on average
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

}  // namespace numemu::net
