// Average pooling: a float64 line of channels per window there, one per image back.
#include "emu/net/ops/average_pool.hpp"

#include <algorithm>
#include <vector>

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {
AveragePool::AveragePool(const PoolOptions& options) : options_(checked("average_pool", options)) {}

Shape AveragePool::output_shape(std::span<const Shape> inputs) const {
  return pooled_shape("average_pool", options_, inputs);
}

void AveragePool::forward(const OpCall&, std::span<const Tensor* const> inputs,
                          Tensor& output) const {
  const Shape x = as_volume(inputs[0]->shape), y = as_volume(output.shape);
  const float* const in = inputs[0]->data.data();
  float* const out = output.data.data();
  const std::int64_t channels = x[4];
  for_each_row(x[0], x[1] * x[2] * x[3] * channels, [&](std::int64_t n) {
    std::vector<double> sums(static_cast<std::size_t>(channels));
    for_each_window(options_, x, y, n, [&](const PoolWindow& window) {
      std::fill(sums.begin(), sums.end(), 0.0);
      window.for_each_pixel(x, [&](std::int64_t, std::int64_t offset) {
        const float* const pixel = in + window.first + offset;
        for (std::int64_t c = 0; c < channels; ++c) sums[c] += pixel[c];
      });
      for (std::int64_t c = 0; c < channels; ++c)
        out[window.out + c] = neutral(static_cast<float>(sums[c] / window.divisor()));
    });
  });
}

OperatorMemory AveragePool::memory(std::span<const Shape> inputs) const {
  return {.backward = 2 * images_at_once(inputs[0])};  // sums in float64
}

void AveragePool::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                           const Tensor& grad_output, std::span<Tensor> grad_inputs,
                           std::span<Tensor>, bool want_inputs) const {
  if (!want_inputs) return;
  const Shape x = as_volume(grad_inputs[0].shape), y = as_volume(grad_output.shape);
  const float* const g = grad_output.data.data();
  float* const grad = grad_inputs[0].data.data();
  const std::int64_t channels = x[4], image = x[1] * x[2] * x[3] * channels;
  for_each_row(x[0], image, [&](std::int64_t n) {
    std::vector<double> sums(static_cast<std::size_t>(image));
    for_each_window(options_, x, y, n, [&](const PoolWindow& window) {
      const float* const from = g + window.out;
      window.for_each_pixel(x, [&](std::int64_t, std::int64_t offset) {
        double* const pixel = sums.data() + window.first - n * image + offset;
        for (std::int64_t c = 0; c < channels; ++c) pixel[c] += double{from[c]} / window.divisor();
      });
    });
    for (std::int64_t i = 0; i < image; ++i)
      grad[n * image + i] = neutral(static_cast<float>(sums[i]));
  });
}

}  // namespace numemu::net
