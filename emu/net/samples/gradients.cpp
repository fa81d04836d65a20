#include "emu/net/samples/gradients.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "formats/quantize.hpp"
#include "formats/scaling/scale_rule.hpp"

namespace numemu::net::samples {
namespace {

std::vector<float> stored(const SampleOperand& operand, const Stored& how, std::uint32_t tensor,
                          std::int64_t count) {
  std::vector<float> data(operand.data.begin(), operand.data.begin() + count * operand.elements);
  if (how.format == nullptr) return data;
  const Conversion conversion{
      .format = how.format,
      .rounding = how.rounding,
      .random = {how.seed, Stream::quantize, how.first_tensor + tensor, how.draw}};
  quantize_values(conversion, data.data(), std::ssize(data), scale_of(operand, *how.format),
                  data.data());
  return data;
}

double dot_of(const float* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

}  // namespace

float scale_of(const SampleOperand& operand, const Format& format) {
  return absmax_scale(largest_magnitude(operand.data.data(), std::ssize(operand.data)),
                      {.format = &format});
}

SampleGradients::SampleGradients(const std::vector<LayerOperands>& operands, const Stored& how,
                                 std::int64_t count) {
  const SampleOperand& any = operands.front().g;
  samples_ = count > 0 ? count : std::ssize(any.data) / any.elements;
  std::uint32_t tensor = 0;
  std::vector<float> padded, g, x;
  for (const LayerOperands& from : operands) {
    Layer layer{from.factored(),
                from.bias,
                from.g.rows(),
                from.x.rows(),
                stored(from.g, how, tensor, samples_),
                stored(from.x, how, tensor + 1, samples_),
                {}};
    tensor += 2;
    if (!layer.factored) {
      const std::int64_t positions = from.g.positions(), whole = layer.channels * layer.depth;
      layer.whole.assign(static_cast<std::size_t>(samples_ * (whole + layer.channels)), 0);
      for (std::int64_t s = 0; s < samples_; ++s) {
        from.g.read(from.g.bordered(layer.g.data() + s * from.g.elements, padded), g);
        from.x.read(from.x.bordered(layer.x.data() + s * from.x.elements, padded), x);
        double* weight = layer.whole.data() + s * whole;
        double* bias = layer.whole.data() + samples_ * whole + s * layer.channels;
        for (std::int64_t c = 0; c < layer.channels; ++c) {
          const float* const row = g.data() + c * positions;
          bias[c] = from.bias ? std::accumulate(row, row + positions, 0.0) : 0;
          for (std::int64_t k = 0; k < layer.depth; ++k)
            *weight++ = dot_of(row, x.data() + k * positions, positions);
        }
      }
      layer.g.clear();
      layer.x.clear();
    }
    layers_.push_back(std::move(layer));
  }
}

double SampleGradients::dot(std::int64_t i, const SampleGradients& other, std::int64_t j) const {
  double sum = 0;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer &a = layers_[l], &b = other.layers_[l];
    if (a.factored) {
      const double g = dot_of(a.g.data() + i * a.channels, b.g.data() + j * a.channels, a.channels),
                   x = dot_of(a.x.data() + i * a.depth, b.x.data() + j * a.depth, a.depth);
      sum += g * (x + (a.bias ? 1 : 0));
      continue;
    }
    const std::int64_t whole = a.channels * a.depth;
    const double *w = a.whole.data() + i * whole, *v = b.whole.data() + j * whole;
    sum = std::inner_product(w, w + whole, v, sum);
    w = a.whole.data() + samples_ * whole + i * a.channels;
    v = b.whole.data() + other.samples_ * whole + j * a.channels;
    sum = std::inner_product(w, w + a.channels, v, sum);
  }
  return sum;
}

}  // namespace numemu::net::samples
