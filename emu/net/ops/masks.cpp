#include "emu/net/ops/masks.hpp"

#include <algorithm>
#include <limits>

#include "emu/net/ops/elementwise.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"

namespace numemu::net {
namespace {

// out = x up to the diagonal of the last two axes, `above` beyond it.
void mask(const Tensor& x, float above, Tensor& out) {
  if (x.empty()) return;
  const std::int64_t size = x.shape.back();
  const float* const from = x.data.data();
  float* const to = out.data.data();
  for_each_row(x.size() / size, size, [=](std::int64_t row) {
    const std::int64_t seen = row % size + 1, start = row * size;
    for (std::int64_t i = 0; i < seen; ++i) to[start + i] = neutral(from[start + i]);
    std::fill(to + start + seen, to + start + size, above);
  });
}

}  // namespace

Shape CausalMask::output_shape(Shapes inputs) const {
  const bool fits = inputs.size() == 1 && inputs[0].size() >= 2 &&
                    inputs[0].back() == inputs[0][inputs[0].size() - 2];
  if (!fits) {
    throw Error("causal_mask: expected one input [..., T, T], got " +
                (inputs.size() == 1 ? to_string(inputs[0]) : std::to_string(inputs.size())));
  }
  return inputs[0];
}

void CausalMask::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  mask(*inputs[0], -std::numeric_limits<float>::infinity(), output);
}

void CausalMask::backward(const OpCall&, const OpBackward& back) const {
  if (back.want_inputs) mask(back.grad_output, 0, back.grad_inputs[0]);
}

Dropout::Dropout(double probability)
    : Op({.kind = "dropout", .inputs = kNoInput, .on_codes = OnCodes::picks}),
      probability_(probability) {
  if (!(probability >= 0 && probability < 1)) {
    throw Error("dropout: expected a probability from 0 to below 1, got " +
                std::to_string(probability));
  }
}

Shape Dropout::output_shape(Shapes inputs) const {
  if (inputs.size() != 1)
    throw Error("dropout: expected one input, got " + std::to_string(inputs.size()));
  return inputs[0];
}

void Dropout::apply(const OpCall& call, const Tensor& x, Tensor& y) const {
  if (call.phase == Phase::inference || probability_ == 0) {
    y.data = x.data;
    return;
  }
  std::string step = std::to_string(call.step.index);
  if (call.step.part > 0) step += "." + std::to_string(call.step.part);
  const std::uint32_t tensor = tensor_word(std::string(call.layer) + "/mask/" + step + "/dropout");
  const auto scale = static_cast<float>(1 / (1 - probability_));
  const std::int64_t n = x.size();
  const float* const from = x.data.data();
  float* const to = y.data.data();
  // RandomSource::bits(i, 32) is word i mod 4 of block i / 4: each block is drawn once here.
  for_each_row((n + 3) / 4, 16, [=, seed = call.seed, probability = probability_](std::int64_t b) {
    const auto high = static_cast<std::uint32_t>(b >> 32) & 0xffff;
    const PhiloxBlock words = philox(seed, {static_cast<std::uint32_t>(b), high, tensor,
                                            static_cast<std::uint32_t>(Stream::dropout)});
    for (std::int64_t i = 4 * b; i < std::min(n, 4 * b + 4); ++i)
      to[i] = words[i % 4] * 0x1p-32 >= probability ? neutral(from[i] * scale) : 0;
  });
}

void Dropout::forward(const OpCall& call, OpInputs inputs, Tensor& output) const {
  apply(call, *inputs[0], output);
}

void Dropout::backward(const OpCall& call, const OpBackward& back) const {
  if (back.want_inputs) apply(call, back.grad_output, back.grad_inputs[0]);
}

}  // namespace numemu::net
