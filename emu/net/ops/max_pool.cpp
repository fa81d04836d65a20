// Max-pooling: the channels of a window are compared line by line, one pixel after the other;
// images go to threads.
#include "emu/net/ops/max_pool.hpp"

#include <algorithm>
#include <vector>

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {
namespace {

// The larger of each channel so far and the next pixel, where a NaN wins. Without branches: which
// one it is is as good as random.
void take_larger(const float* pixel, std::int64_t channels, float* largest) {
#pragma omp simd
  for (std::int64_t c = 0; c < channels; ++c) {
    const float candidate = pixel[c], old = largest[c];
    const float larger = candidate > old ? candidate : old;
    largest[c] = candidate == candidate ? larger : neutral(candidate);
  }
}

// The same with the number of the first pixel that has it.
void take_larger(const float* pixel, std::int64_t channels, std::int32_t number, float* largest,
                 std::int32_t* winner) {
#pragma omp simd
  for (std::int64_t c = 0; c < channels; ++c) {
    const float candidate = pixel[c], old = largest[c];
    const std::int32_t before = winner[c];
    const int nan = candidate != candidate, was_nan = old != old, larger = candidate > old;
    const int wins = larger | (nan & ~was_nan);
    winner[c] = wins ? number : before;
    largest[c] = wins ? candidate : old;
  }
}

}  // namespace

MaxPool::MaxPool(const PoolOptions& options) : options_(checked("max_pool", options)) {}

MaxPool::MaxPool(std::int64_t size, std::int64_t stride)
    : MaxPool(PoolOptions{.kernel_height = size,
                          .kernel_width = size,
                          .stride_height = stride,
                          .stride_width = stride}) {}

Shape MaxPool::output_shape(std::span<const Shape> inputs) const {
  return pooled_shape("max_pool", options_, inputs);
}

void MaxPool::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  const Shape x = as_volume(inputs[0]->shape), y = as_volume(output.shape);
  const float* const in = inputs[0]->data.data();
  const std::int64_t channels = x[4];
  for_each_row(x[0], x[1] * x[2] * x[3] * channels, [&](std::int64_t n) {
    for_each_window(options_, x, y, n, [&](const PoolWindow& window) {
      float* const largest = output.data.data() + window.out;
      window.for_each_pixel(x, [&](std::int64_t tap, std::int64_t offset) {
        const float* const pixel = in + window.first + offset;
        if (tap == 0) {
          for (std::int64_t c = 0; c < channels; ++c) largest[c] = neutral(pixel[c]);
        } else {
          take_larger(pixel, channels, largest);
        }
      });
    });
  });
}

void MaxPool::backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor*,
                       const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                       bool want_inputs) const {
  if (!want_inputs) return;
  const Shape x = as_volume(inputs[0]->shape), y = as_volume(grad_output.shape);
  const float* const in = inputs[0]->data.data();
  float* const grad = grad_inputs[0].data.data();  // zero on entry; windows may overlap
  const std::int64_t channels = x[4];
  for_each_row(x[0], x[1] * x[2] * x[3] * channels, [&](std::int64_t n) {
    std::vector<float> largest(static_cast<std::size_t>(channels));
    std::vector<std::int32_t> winner(largest.size());
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(
        options_.kernel_depth * options_.kernel_height * options_.kernel_width));
    for_each_window(options_, x, y, n, [&](const PoolWindow& window) {
      window.for_each_pixel(x, [&](std::int64_t tap, std::int64_t offset) {
        offsets[tap] = offset;
        const float* const pixel = in + window.first + offset;
        if (tap == 0) {
          std::copy_n(pixel, channels, largest.data());
          std::fill(winner.begin(), winner.end(), 0);
        } else {
          take_larger(pixel, channels, static_cast<std::int32_t>(tap), largest.data(),
                      winner.data());
        }
      });
      const float* const g = grad_output.data.data() + window.out;
      for (std::int64_t c = 0; c < channels; ++c) {
        float& target = grad[window.first + offsets[winner[c]] + c];
        target = neutral(target + g[c]);
      }
    });
  });
}

}  // namespace numemu::net
