// Running sums; the gradient of one runs the other way.
#include "emu/net/ops/cumulative_sum.hpp"

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/strided_copy.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

void run(const CumulativeSumOptions& options, const Tensor& x, Tensor& y) {
  const auto axis =
      static_cast<std::size_t>(checked_axis("cumulative_sum", options.axis, x.shape.size()));
  const std::int64_t n = x.shape[axis], step = row_major(x.shape).steps[axis];
  if (x.empty()) return;
  const float* const from = x.data.data();
  float* const to = y.data.data();
  for_each_row(x.size() / n, n, [=](std::int64_t line) {
    const std::int64_t start = line / step * step * n + line % step;
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = start + (options.reverse ? n - 1 - i : i) * step;
      const double before = sum;
      sum += from[at];
      to[at] = neutral(static_cast<float>(options.exclusive ? before : sum));
    }
  });
}

}  // namespace

Shape CumulativeSum::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1)
    throw Error("cumulative_sum: expected one input, got " + std::to_string(inputs.size()));
  checked_axis("cumulative_sum", options_.axis, inputs[0].size());
  return inputs[0];
}

void CumulativeSum::forward(const OpCall&, std::span<const Tensor* const> inputs,
                            Tensor& output) const {
  run(options_, *inputs[0], output);
}

void CumulativeSum::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                             const Tensor& grad_output, std::span<Tensor> grad_inputs,
                             std::span<Tensor>, bool want_inputs) const {
  if (!want_inputs) return;
  CumulativeSumOptions other = options_;
  other.reverse = !options_.reverse;
  run(other, grad_output, grad_inputs[0]);
}

}  // namespace numemu::net
