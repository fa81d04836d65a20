// A choice between two tensors; the gradient goes to the one that was chosen.
#include "emu/net/ops/where.hpp"

#include "emu/net/ops/axis_sums.hpp"
#include "emu/net/ops/broadcast.hpp"
#include "formats/error.hpp"

namespace numemu::net {

Shape Where::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 3)
    throw Error("where: expected three inputs, got " + std::to_string(inputs.size()));
  return Broadcast("where", inputs).shape();
}

void Where::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  std::array<Shape, 3> shapes;
  std::array<const float*, 3> data;
  for (int k = 0; k < 3; ++k) {
    shapes[k] = inputs[k]->shape;
    data[k] = inputs[k]->data.data();
  }
  float* const y = output.data.data();
  Broadcast("where", shapes)
      .for_each_run(data, [=](std::int64_t first, std::int64_t n, const Broadcast::Runs& runs) {
        for (std::int64_t i = 0; i < n; ++i)
          y[first + i] = neutral(runs[0][i] != 0 ? runs[1][i] : runs[2][i]);
      });
}

void Where::backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor*,
                     const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                     bool want_inputs) const {
  if (!want_inputs) return;
  const std::array<Shape, 2> shapes{inputs[0]->shape, grad_output.shape};
  const std::array<const float*, 2> data{inputs[0]->data.data(), grad_output.data.data()};
  Tensor passed(grad_output.shape);
  float* const out = passed.data.data();
  for (int k = 1; k < 3; ++k) {
    const bool chosen = k == 1;
    Broadcast("where", shapes)
        .for_each_run(data, [=](std::int64_t first, std::int64_t n, const Broadcast::Runs& runs) {
          for (std::int64_t i = 0; i < n; ++i)
            out[first + i] = (runs[0][i] != 0) == chosen ? neutral(runs[1][i]) : 0;
        });
    if (grad_inputs[k].size() == passed.size()) {
      grad_inputs[k].data = passed.data;
    } else {
      sum_to(passed, grad_inputs[k]);
    }
  }
  std::fill(grad_inputs[0].data.begin(), grad_inputs[0].data.end(), 0.0f);
}

}  // namespace numemu::net
