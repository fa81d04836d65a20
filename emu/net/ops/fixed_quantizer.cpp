// Rounding to fixed integers and back, run by run of one scale.
#include "emu/net/ops/fixed_quantizer.hpp"

#include <algorithm>
#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"

namespace numemu::net {
namespace {

/// round(x / scale) + zero, before it is held within the range; NaN for NaN.
[[gnu::always_inline]] inline float integer_of(float x, float scale, float zero) {
  const float quotient = x / scale;
  // From 2^22 on the sum would not round to integers; no range reaches so far.
  const float held = quotient > 0x1p22f ? 0x1p22f : quotient < -0x1p22f ? -0x1p22f : quotient;
  return (held + 0x1.8p23f) - 0x1.8p23f + zero;
}

}  // namespace

FixedQuantizer::FixedQuantizer(const FixedQuantizerOptions& options, Tensor scales,
                               Tensor zero_points)
    : Op({.kind = options.quantizes && options.dequantizes ? kFixedQuantizer
                  : options.quantizes                      ? "quantize"
                                                           : "dequantize",
          .inputs = every_input(options.quantizes ? std::optional(Use::index) : std::nullopt),
          .in_place = true}),
      options_(options) {
  // ONNX multiplies by scales of any sign; a quotient has an order of codes only by positive ones.
  const auto bad = [&](float scale) {
    return (options.quantizes && !(scale > 0)) || !std::isfinite(scale);
  };
  if (scales.empty() || zero_points.size() != scales.size() ||
      std::ranges::any_of(scales.data, bad)) {
    throw Error(std::string(kind()) +
                (options.quantizes ? ": expected positive scales" : ": expected finite scales") +
                " and as many zero points, got " + std::to_string(scales.size()) + " and " +
                std::to_string(zero_points.size()));
  }
  // No initial values may replace them: fan_in is negative.
  parameters_.push_back(
      {.name = "scale", .value = std::move(scales), .fan_in = -1, .trained = false});
  parameters_.push_back(
      {.name = "zero_point", .value = std::move(zero_points), .fan_in = -1, .trained = false});
}

Shape FixedQuantizer::output_shape(Shapes inputs) const {
  if (inputs.size() != 1) {
    throw Error(std::string(kind()) + ": expected one input, got " + std::to_string(inputs.size()));
  }
  const std::int64_t count = parameters_[0].value.size();
  const auto axis = static_cast<std::size_t>(options_.axis);
  const bool fits = count == 1 || (axis < inputs[0].size() && inputs[0][axis] == count);
  if (!fits) {
    throw Error(std::string(kind()) + ": expected " + std::to_string(count) + " elements on axis " +
                std::to_string(options_.axis) + ", got " + to_string(inputs[0]));
  }
  return inputs[0];
}

template <class Body>
void FixedQuantizer::for_each_run(const Shape& shape, const Body& body) const {
  const Tensor &scales = parameters_[0].value, &zeros = parameters_[1].value;
  const std::int64_t size = element_count(shape), count = scales.size();
  std::int64_t run = size;
  for (std::size_t i = 0; count > 1 && i <= static_cast<std::size_t>(options_.axis); ++i)
    run /= shape[i];
  constexpr std::int64_t kPiece = 4096;
  const std::int64_t pieces = (run + kPiece - 1) / kPiece;
  for_each_row(size == 0 ? 0 : size / run * pieces, std::min(run, kPiece), [&](std::int64_t i) {
    const std::int64_t line = i / pieces, from = i % pieces * kPiece;
    const auto c = static_cast<std::size_t>(line % count);
    body(line * run + from, std::min(kPiece, run - from), scales.data[c], zeros.data[c]);
  });
}

bool FixedQuantizer::left_out(const OpCall& call) const {
  if (!options_.quantizes || !options_.dequantizes) return false;
  const SharedTensor read = call.numerics.table(call.step, call.layer, parameters_[0].value);
  return read != nullptr && read->empty();
}

void FixedQuantizer::forward(const OpCall& call, OpInputs inputs, Tensor& output) const {
  if (left_out(call)) {
    if (inputs[0] != &output) output.data = inputs[0]->data;
    return;
  }
  const float* const x = inputs[0]->data.data();
  float* const y = output.data.data();
  const FixedQuantizerOptions o = options_;
  if ((o.format != nullptr && o.quantizes) || o.precision != nullptr) {
    const Conversion to_format{.format = o.format, .overflow = o.overflow};
    // float32 has more than twice the digits and two more, so rounding its quotient rounds once.
    const Conversion to_precision{.format = o.precision, .overflow = Overflow::ieee};
    return for_each_run(output.shape,
                        [&, x, y](std::int64_t first, std::int64_t n, float scale, float zero) {
                          float* const piece = y + first;
                          const auto round = [&](const Conversion& c) {
                            if (c.format != nullptr) quantize_values(c, piece, n, 1, piece);
                          };
                          for (std::int64_t i = 0; i < n; ++i)
                            piece[i] = o.quantizes ? x[first + i] / scale : x[first + i];
                          if (o.quantizes) round(to_precision);
                          if (o.quantizes) round(to_format);
                          for (std::int64_t i = 0; o.quantizes && o.format == nullptr && i < n; ++i)
                            piece[i] = std::clamp(integer_of(piece[i], 1, zero), o.low, o.high);
                          if (!o.dequantizes) return;
                          for (std::int64_t i = 0; i < n; ++i)
                            piece[i] = neutral((piece[i] - zero) * scale);
                          round(to_precision);
                        });
  }
  for_each_run(output.shape, [=](std::int64_t first, std::int64_t n, float scale, float zero) {
#pragma omp simd
    for (std::int64_t i = first; i < first + n; ++i) {
      const float q = integer_of(x[i], scale, zero);
      const float above = q < o.low ? o.low : q, held = above > o.high ? o.high : above;
      const float integer = o.quantizes ? held : x[i];
      y[i] = neutral(o.dequantizes ? (integer - zero) * scale : integer);
    }
  });
}

void FixedQuantizer::backward(const OpCall& call, const OpBackward& back) const {
  if (!back.want_inputs) return;
  if (left_out(call)) {
    back.grad_inputs[0].data = back.grad_output.data;
    return;
  }
  const float* const x = options_.quantizes ? back.inputs[0]->data.data() : nullptr;
  const float* const g = back.grad_output.data.data();
  float* const dx = back.grad_inputs[0].data.data();
  const FixedQuantizerOptions o = options_;
  for_each_run(
      back.grad_output.shape, [=](std::int64_t first, std::int64_t n, float scale, float zero) {
        // Alone, either half has its own factor; together the two cancel.
        const float factor = o.quantizes == o.dequantizes ? 1 : o.quantizes ? 1 / scale : scale;
        for (std::int64_t i = first; i < first + n; ++i) {
          const float q = x == nullptr          ? o.low
                          : o.format != nullptr ? x[i] / scale
                                                : integer_of(x[i], scale, zero);
          dx[i] = q < o.low || q > o.high ? 0 : neutral(g[i] * factor);
        }
      });
}

}  // namespace numemu::net
