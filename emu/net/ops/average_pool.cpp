// Average pooling: a float64 line of channels per window there, one per image back.
#include "emu/net/ops/average_pool.hpp"

#include <algorithm>
#include <vector>

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {
namespace {

// body(rows, columns, out) for every window of image n of [n, h, w, c], `out` the offset of its
// first result.
template <class Body>
void for_each_window(const PoolOptions& o, const Shape& x, const Shape& y, std::int64_t n,
                     const Body& body) {
  for (std::int64_t oh = 0; oh < y[1]; ++oh) {
    const PoolSpan rows = pool_span(oh, o.kernel_height, o.stride_height, o.pad_top, o.pad_bottom,
                                    x[1], o.count_include_pad);
    for (std::int64_t ow = 0; ow < y[2]; ++ow) {
      const PoolSpan columns = pool_span(ow, o.kernel_width, o.stride_width, o.pad_left,
                                         o.pad_right, x[2], o.count_include_pad);
      body(rows, columns, ((n * y[1] + oh) * y[2] + ow) * y[3]);
    }
  }
}

}  // namespace

AveragePool::AveragePool(const PoolOptions& options) : options_(checked("average_pool", options)) {}

Shape AveragePool::output_shape(std::span<const Shape> inputs) const {
  return pooled_shape("average_pool", options_, inputs);
}

void AveragePool::forward(const OpCall&, std::span<const Tensor* const> inputs,
                          Tensor& output) const {
  const Shape &x = inputs[0]->shape, &y = output.shape;  // [n, h, w, c], [n, oh, ow, c]
  const float* const in = inputs[0]->data.data();
  float* const out = output.data.data();
  const std::int64_t channels = x[3];
  for_each_row(x[0], x[1] * x[2] * channels, [&](std::int64_t n) {
    std::vector<double> sums(static_cast<std::size_t>(channels));
    for_each_window(options_, x, y, n, [&](const PoolSpan& rows, const PoolSpan& columns, auto to) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::int64_t h = rows.from; h < rows.to; ++h) {
        for (std::int64_t w = columns.from; w < columns.to; ++w) {
          const float* const pixel = in + ((n * x[1] + h) * x[2] + w) * channels;
          for (std::int64_t c = 0; c < channels; ++c) sums[c] += pixel[c];
        }
      }
      const double divisor = static_cast<double>(rows.divisor * columns.divisor);
      for (std::int64_t c = 0; c < channels; ++c)
        out[to + c] = neutral(static_cast<float>(sums[c] / divisor));
    });
  });
}

void AveragePool::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                           const Tensor& grad_output, std::span<Tensor> grad_inputs,
                           std::span<Tensor>, bool want_inputs) const {
  if (!want_inputs) return;
  const Shape &x = grad_inputs[0].shape, &y = grad_output.shape;
  const float* const g = grad_output.data.data();
  float* const grad = grad_inputs[0].data.data();
  const std::int64_t channels = x[3], image = x[1] * x[2] * channels;
  for_each_row(x[0], image, [&](std::int64_t n) {
    std::vector<double> sums(static_cast<std::size_t>(image));
    for_each_window(options_, x, y, n,
                    [&](const PoolSpan& rows, const PoolSpan& columns, auto from) {
                      const double divisor = static_cast<double>(rows.divisor * columns.divisor);
                      for (std::int64_t h = rows.from; h < rows.to; ++h) {
                        for (std::int64_t w = columns.from; w < columns.to; ++w) {
                          double* const pixel = sums.data() + (h * x[2] + w) * channels;
                          for (std::int64_t c = 0; c < channels; ++c)
                            pixel[c] += double{g[from + c]} / divisor;
                        }
                      }
                    });
    for (std::int64_t i = 0; i < image; ++i)
      grad[n * image + i] = neutral(static_cast<float>(sums[i]));
  });
}

}  // namespace numemu::net
