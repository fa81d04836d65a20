// Bias: one float32 addition per output, one pairwise sum per channel.
#include "emu/net/ops/bias.hpp"

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/sums.hpp"

namespace numemu::net {

void add_bias(const Tensor& bias, Tensor& y) {
  const std::int64_t channels = bias.size();
  const float* const b = bias.data.data();
  float* const data = y.data.data();
  for_each_row(channels == 0 ? 0 : y.size() / channels, channels, [=](std::int64_t row) {
    float* const out = data + row * channels;
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) out[c] = neutral(out[c] + b[c]);
  });
}

void bias_gradient(const Tensor& grad_output, Tensor& gradient) {
  if (gradient.empty()) return;
  const std::int64_t channels = gradient.size();
  const std::vector<double> sums =
      column_sums(grad_output.data.data(), grad_output.size() / channels, channels);
  for (std::int64_t c = 0; c < channels; ++c)
    gradient.data[c] = neutral(static_cast<float>(sums[c]));
}

}  // namespace numemu::net
