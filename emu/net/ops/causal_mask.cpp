#include "emu/net/ops/causal_mask.hpp"

#include <algorithm>
#include <limits>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

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

Shape CausalMask::output_shape(std::span<const Shape> inputs) const {
  const bool fits = inputs.size() == 1 && inputs[0].size() >= 2 &&
                    inputs[0].back() == inputs[0][inputs[0].size() - 2];
  if (!fits) {
    throw Error("causal_mask: expected one input [..., T, T], got " +
                (inputs.size() == 1 ? to_string(inputs[0]) : std::to_string(inputs.size())));
  }
  return inputs[0];
}

void CausalMask::forward(const OpCall&, std::span<const Tensor* const> inputs,
                         Tensor& output) const {
  mask(*inputs[0], -std::numeric_limits<float>::infinity(), output);
}

void CausalMask::backward(const OpCall&, std::span<const Tensor* const>, const Tensor*,
                          const Tensor& grad_output, std::span<Tensor> grad_inputs,
                          std::span<Tensor>, bool want_inputs) const {
  if (want_inputs) mask(grad_output, 0, grad_inputs[0]);
}

}  // namespace numemu::net
