// Global average pooling: column sums of each image.
#include "emu/net/ops/global_average_pool.hpp"

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/sums.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

std::int64_t pixels_of(const Shape& image) {
  return element_count({image.begin() + 1, image.end() - 1});
}

}  // namespace

Shape GlobalAveragePool::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].size() < 3 || pixels_of(inputs[0]) < 1) {
    throw Error("global_average_pool: expected one input [batch, .., width, channels], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  Shape shape(inputs[0].size(), 1);
  shape.front() = inputs[0].front();
  shape.back() = inputs[0].back();
  return shape;
}

void GlobalAveragePool::forward(const OpCall&, std::span<const Tensor* const> inputs,
                                Tensor& output) const {
  const Shape& x = inputs[0]->shape;  // [n, .., c]
  const std::int64_t pixels = pixels_of(x), channels = x.back();
  for (std::int64_t n = 0; n < x[0]; ++n) {
    const std::vector<double> sums =
        column_sums(inputs[0]->data.data() + n * pixels * channels, pixels, channels);
    for (std::int64_t c = 0; c < channels; ++c) {
      output.data[n * channels + c] =
          neutral(static_cast<float>(sums[c] / static_cast<double>(pixels)));
    }
  }
}

void GlobalAveragePool::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                                 const Tensor& grad_output, std::span<Tensor> grad_inputs,
                                 std::span<Tensor>, bool want_inputs) const {
  if (!want_inputs) return;
  const Shape& x = grad_inputs[0].shape;  // [n, .., c]
  const std::int64_t pixels = pixels_of(x), channels = x.back();
  const float* const g = grad_output.data.data();  // [n, 1.., c]
  float* const grad = grad_inputs[0].data.data();
  for_each_row(x[0] * pixels, channels, [=](std::int64_t row) {
    const float* const from = g + row / pixels * channels;
    for (std::int64_t c = 0; c < channels; ++c)
      grad[row * channels + c] = neutral(from[c] / static_cast<float>(pixels));
  });
}

}  // namespace numemu::net
