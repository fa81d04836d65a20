// Dropout: the mask is a function of seed, layer, step and element, so backward computes it again.
#include "emu/net/ops/dropout.hpp"

#include <algorithm>

#include "emu/net/ops/elementwise.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"

namespace numemu::net {

Dropout::Dropout(double probability) : probability_(probability) {
  if (!(probability >= 0 && probability < 1)) {
    throw Error("dropout: expected a probability from 0 to below 1, got " +
                std::to_string(probability));
  }
}

Shape Dropout::output_shape(std::span<const Shape> inputs) const {
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
  if (call.step.worker > 0) step += "." + std::to_string(call.step.worker);
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

void Dropout::forward(const OpCall& call, std::span<const Tensor* const> inputs,
                      Tensor& output) const {
  apply(call, *inputs[0], output);
}

void Dropout::backward(const OpCall& call, std::span<const Tensor* const>, const Tensor*,
                       const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                       bool want_inputs) const {
  if (want_inputs) apply(call, grad_output, grad_inputs[0]);
}

}  // namespace numemu::net
