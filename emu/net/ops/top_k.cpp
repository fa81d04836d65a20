// Each line is sorted as far as k.
#include "emu/net/ops/top_k.hpp"

#include <algorithm>
#include <numeric>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/strided_copy.hpp"
#include "formats/error.hpp"

namespace numemu::net {

TopK::TopK(const TopKOptions& options) : options_(options) {
  if (options.k < 1 || (!options.keep && options.k != 1))
    throw Error("top_k: expected at least one element, and one where the axis is dropped, got " +
                std::to_string(options.k));
}

Shape TopK::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1)
    throw Error("top_k: expected one input, got " + std::to_string(inputs.size()));
  Shape shape = inputs[0];
  const auto axis = checked_axis("top_k", options_.axis, shape.size());
  if (shape[axis] < options_.k) {
    throw Error("top_k: expected at least " + std::to_string(options_.k) + " elements on axis " +
                std::to_string(axis) + " of " + to_string(shape));
  }
  shape[axis] = options_.k;
  if (!options_.keep) shape.erase(shape.begin() + axis);
  return shape;
}

template <class Visit>
void TopK::for_each_chosen(const Tensor& x, const Visit& visit) const {
  const std::int64_t axis = checked_axis("top_k", options_.axis, x.shape.size());
  const std::int64_t n = x.shape[axis], step = row_major(x.shape).steps[axis], k = options_.k;
  const float* const data = x.data.data();
  const TopKOptions options = options_;
  for_each_row(x.size() / n, n, [&, options](std::int64_t line) {
    const std::int64_t outer = line / step, inner = line % step;
    const float* const from = data + outer * n * step + inner;
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    const auto above = [=](float a, float b) { return a > b || (a != a && b == b); };
    std::partial_sort(order.begin(), order.begin() + k, order.end(),
                      [&](std::int64_t i, std::int64_t j) {
                        const float a = from[i * step], b = from[j * step];
                        const bool first = options.largest ? above(a, b) : above(b, a);
                        const bool second = options.largest ? above(b, a) : above(a, b);
                        if (first || second) return first;
                        return options.last_first ? i > j : i < j;
                      });
    for (std::int64_t c = 0; c < k; ++c)
      visit((outer * k + c) * step + inner, outer * n * step + inner + order[c] * step, order[c]);
  });
}

void TopK::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  const float* const x = inputs[0]->data.data();
  float* const y = output.data.data();
  for_each_chosen(*inputs[0], [&](std::int64_t to, std::int64_t from, std::int64_t place) {
    y[to] = options_.places ? static_cast<float>(place) : neutral(x[from]);
  });
}

void TopK::backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor*,
                    const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                    bool want_inputs) const {
  if (!want_inputs || options_.places) return;
  const float* const g = grad_output.data.data();
  float* const dx = grad_inputs[0].data.data();  // zero on entry
  for_each_chosen(*inputs[0], [&](std::int64_t to, std::int64_t from, std::int64_t) {
    dx[from] = neutral(g[to]);
  });
}

}  // namespace numemu::net
