// Rows of width x channels as one line, with weights repeated along it: loops as long as a row,
// for any number of channels.
#include "policies/zap/depthwise.hpp"

#include <algorithm>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/sums.hpp"
#include "formats/error.hpp"

namespace numemu::policies {
namespace {

constexpr std::int64_t kTaps = 9;

struct Extents {
  explicit Extents(const net::Shape& shape)
      : images(shape[0]), rows(shape[1]), line(shape[2] * shape[3]), channels(shape[3]) {}
  std::int64_t images, rows, line, channels;  // line: elements of a row of pixels
  std::int64_t padded_line() const { return line + 2 * channels; }
  std::int64_t padded_size() const { return (rows + 2) * padded_line(); }
  /// From a padded pixel to the tap's, the window beginning at the first.
  std::int64_t tap(std::int64_t t) const { return t / 3 * padded_line() + t % 3 * channels; }
};

/// An image with its border of zeros.
void pad(const Extents& e, const float* image, std::vector<float>& padded) {
  padded.assign(static_cast<std::size_t>(e.padded_size()), 0);
  for (std::int64_t y = 0; y < e.rows; ++y)
    std::copy_n(image + y * e.line, e.line, padded.data() + (y + 1) * e.padded_line() + e.channels);
}

/// weight [channels, 9], in opposite order where `flipped`, as [9, line].
std::vector<float> repeated(const Extents& e, const std::vector<float>& weight, bool flipped) {
  std::vector<float> lines(static_cast<std::size_t>(kTaps * e.line));
  for (std::int64_t t = 0; t < kTaps; ++t) {
    const std::int64_t from = flipped ? kTaps - 1 - t : t;
    for (std::int64_t j = 0; j < e.line; ++j)
      lines[t * e.line + j] = weight[j % e.channels * kTaps + from];
  }
  return lines;
}

/// y = x * w, w [9, line].
void convolve(const Extents& e, const float* x, const std::vector<float>& weight, float* y) {
  net::for_each_row(e.images, kTaps * e.rows * e.line, [&](std::int64_t n) {
    std::vector<float> padded;
    pad(e, x + n * e.rows * e.line, padded);
    for (std::int64_t row = 0; row < e.rows; ++row) {
      const float* const from = padded.data() + row * e.padded_line();
      float* const to = y + (n * e.rows + row) * e.line;
      std::fill_n(to, e.line, 0.0f);
      for (std::int64_t t = 0; t < kTaps; t += 3) {
        const float* const a = from + e.tap(t);
        const float* const w = weight.data() + t * e.line;
        const std::int64_t line = e.line, step = e.channels;
#pragma omp simd
        for (std::int64_t j = 0; j < line; ++j) {
          to[j] = ((to[j] + w[j] * a[j]) + w[line + j] * a[step + j]) +
                  w[2 * line + j] * a[2 * step + j];
        }
      }
    }
  });
}

/// Adds one image's sums of g x to sums [channels, 9].
void add_image(const Extents& e, const float* x, const float* g, double* sums) {
  std::vector<float> padded, columns(static_cast<std::size_t>(kTaps * e.line));
  pad(e, x, padded);
  for (std::int64_t row = 0; row < e.rows; ++row) {
    const float* const slope = g + row * e.line;
    for (std::int64_t t = 0; t < kTaps; ++t) {
      const float* const a = padded.data() + row * e.padded_line() + e.tap(t);
      float* const to = columns.data() + t * e.line;
      const std::int64_t line = e.line;
#pragma omp simd
      for (std::int64_t j = 0; j < line; ++j) to[j] += slope[j] * a[j];
    }
  }
  for (std::int64_t t = 0; t < kTaps; ++t)
    for (std::int64_t j = 0; j < e.line; ++j)
      sums[j % e.channels * kTaps + t] += columns[t * e.line + j];
}

}  // namespace

Depthwise3x3::Depthwise3x3(std::int64_t channels)
    : Op({.kind = "depthwise3x3"}), channels_(channels) {
  if (channels < 1) {
    throw Error("depthwise3x3: expected a positive number of channels, got " +
                std::to_string(channels));
  }
  parameters_.push_back({"weight", net::Tensor({channels, 3, 3, 1}), kTaps});
  parameters_.push_back({"bias", net::Tensor({channels}), 0});
}

net::Shape Depthwise3x3::output_shape(net::Shapes inputs) const {
  if (inputs.size() != 1 || inputs[0].size() != 4 || inputs[0][3] != channels_) {
    throw Error("depthwise3x3: expected one input [batch, height, width, " +
                std::to_string(channels_) + "], got " +
                (inputs.empty() ? "none" : net::to_string(inputs[0])));
  }
  return inputs[0];
}

void Depthwise3x3::forward(const net::OpCall&, net::OpInputs inputs, net::Tensor& output) const {
  const Extents e(output.shape);
  convolve(e, inputs[0]->data.data(), repeated(e, parameters_[0].value.data, false),
           output.data.data());
  net::add_bias(parameters_[1].value, output);
}

void Depthwise3x3::backward(const net::OpCall&, const net::OpBackward& back) const {
  const Extents e(back.grad_output.shape);
  const float* const x = back.inputs[0]->data.data();
  const float* const g = back.grad_output.data.data();
  const std::vector<double> sums =
      net::column_tree(e.images, kTaps * channels_, [&](std::int64_t n, double* total) {
        add_image(e, x + n * e.rows * e.line, g + n * e.rows * e.line, total);
      });
  std::transform(sums.begin(), sums.end(), back.grad_parameters[0].data.begin(),
                 [](double sum) { return net::neutral(static_cast<float>(sum)); });
  net::bias_gradient(back.grad_output, back.grad_parameters[1]);
  if (back.want_inputs) {
    convolve(e, g, repeated(e, parameters_[0].value.data, true), back.grad_inputs[0].data.data());
    for (float& slope : back.grad_inputs[0].data) slope = net::neutral(slope);
  }
}

}  // namespace numemu::policies
