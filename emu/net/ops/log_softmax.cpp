#include "emu/net/ops/log_softmax.hpp"

#include "emu/net/ops/softmax_lines.hpp"
#include "formats/error.hpp"
#include "formats/portable/vector_functions.hpp"

namespace numemu::net {

Shape LogSoftmax::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1)
    throw Error("log_softmax: expected one input, got " + std::to_string(inputs.size()));
  Lines::along(kind(), inputs[0], axis_);
  return inputs[0];
}

void LogSoftmax::forward(const OpCall&, std::span<const Tensor* const> inputs,
                         Tensor& output) const {
  const Lines lines = Lines::along(kind(), output.shape, axis_);
  const std::int64_t n = lines.length;
  lines.for_each(inputs[0]->data.data(), nullptr, output.data.data(),
                 [=](const float* a, const float*, float* b) {
                   const double maximum = line_maximum(n, a);
                   const double sum =
                       line_sum(n, [=](std::int64_t i) { return core::exp(a[i] - maximum); });
                   const double shift = core::log(sum);
#pragma omp simd
                   for (std::int64_t i = 0; i < n; ++i)
                     b[i] = neutral(static_cast<float>((a[i] - maximum) - shift));
                 });
}

void LogSoftmax::backward(const OpCall&, std::span<const Tensor* const>, const Tensor* output,
                          const Tensor& grad_output, std::span<Tensor> grad_inputs,
                          std::span<Tensor>, bool want_inputs) const {
  if (!want_inputs) return;
  const Lines lines = Lines::along(kind(), output->shape, axis_);
  const std::int64_t n = lines.length;
  lines.for_each(output->data.data(), grad_output.data.data(), grad_inputs[0].data.data(),
                 [=](const float* y, const float* g, float* dx) {
                   const double sum = line_sum(n, [=](std::int64_t i) { return g[i]; });
#pragma omp simd
                   for (std::int64_t i = 0; i < n; ++i)
                     dx[i] = neutral(static_cast<float>(g[i] - core::exp(y[i]) * sum));
                 });
}

}  // namespace numemu::net
