#include "emu/net/ops/softmax.hpp"

#include "emu/net/ops/softmax_lines.hpp"
#include "formats/error.hpp"
#include "formats/portable/vector_functions.hpp"

namespace numemu::net {

Shape Softmax::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1)
    throw Error("softmax: expected one input, got " + std::to_string(inputs.size()));
  Lines::along(kind(), inputs[0], axis_);
  return inputs[0];
}

void Softmax::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  const Lines lines = Lines::along(kind(), output.shape, axis_);
  const std::int64_t n = lines.length;
  lines.for_each(inputs[0]->data.data(), nullptr, output.data.data(),
                 [=](const float* a, const float*, float* b) {
                   const double maximum = line_maximum(n, a);
                   std::vector<double> powers(static_cast<std::size_t>(n));
                   double* const e = powers.data();
#pragma omp simd
                   for (std::int64_t i = 0; i < n; ++i) e[i] = core::exp(a[i] - maximum);
                   const double sum = line_sum(n, [=](std::int64_t i) { return e[i]; });
#pragma omp simd
                   for (std::int64_t i = 0; i < n; ++i)
                     b[i] = neutral(static_cast<float>(e[i] / sum));
                 });
}

void Softmax::backward(const OpCall&, std::span<const Tensor* const>, const Tensor* output,
                       const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                       bool want_inputs) const {
  if (!want_inputs) return;
  const Lines lines = Lines::along(kind(), output->shape, axis_);
  const std::int64_t n = lines.length;
  lines.for_each(output->data.data(), grad_output.data.data(), grad_inputs[0].data.data(),
                 [=](const float* y, const float* g, float* dx) {
                   const double dot = line_sum(
                       n, [=](std::int64_t i) { return static_cast<double>(g[i]) * y[i]; });
#pragma omp simd
                   for (std::int64_t i = 0; i < n; ++i)
                     dx[i] = neutral(static_cast<float>(y[i] * (g[i] - dot)));
                 });
}

}  // namespace numemu::net
