// LSTM: the input's share of all gates in one product, then step by step; backward in the opposite
// order, by hand.
#include "emu/net/ops/lstm.hpp"

#include "emu/net/math.hpp"
#include "emu/net/ops/bias.hpp"
#include "emu/net/ops/dense.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using unit::Gather;

// A step of the context holds per sample: sigmoid(i), sigmoid(f), tanh(g), sigmoid(o), c.
constexpr std::int64_t kKept = 5;

// f(sample, j) for every element of a [batch, hidden] state.
template <class F>
void for_each_unit(std::int64_t batch, std::int64_t hidden, const F& f) {
  for_each_row(batch, hidden * kKept, [&](std::int64_t sample) {
    for (std::int64_t j = 0; j < hidden; ++j) f(sample, j);
  });
}

// Offsets of the first elements of the rows (sample, step), step in [first, end), in [batch, time,
// width].
std::vector<std::int32_t> rows_of_steps(std::int64_t batch, std::int64_t time, std::int64_t width,
                                        std::int64_t first, std::int64_t end) {
  std::vector<std::int32_t> offsets;
  for (std::int64_t sample = 0; sample < batch; ++sample) {
    for (std::int64_t step = first; step < end; ++step)
      offsets.push_back(static_cast<std::int32_t>((sample * time + step) * width));
  }
  return offsets;
}

}  // namespace

Lstm::Lstm(std::int64_t in, std::int64_t hidden) : in_(in), hidden_(hidden) {
  if (in < 1 || hidden < 1)
    throw Error("lstm: the numbers of inputs and hidden units must be positive");
  // Both products are summed into a gate.
  parameters_.push_back({"weight", Tensor({4 * hidden, in}), in + hidden});
  parameters_.push_back({"recurrent", Tensor({4 * hidden, hidden}), in + hidden});
  parameters_.push_back({"bias", Tensor({4 * hidden}), 0});
}

Shape Lstm::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].size() != 3 || inputs[0][2] != in_) {
    throw Error("lstm: expected one input [batch, time, " + std::to_string(in_) + "], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  return {inputs[0][0], inputs[0][1], hidden_};
}

OperatorMemory Lstm::memory(std::span<const Shape> inputs) const {
  const std::int64_t state = inputs[0][0] * hidden_, states = state * inputs[0][1];
  return {4 * states + 6 * state, 5 * states + 6 * state, kKept * states};
}

void Lstm::forward(const OpCall& call, std::span<const Tensor* const> inputs,
                   Tensor& output) const {
  const Tensor& x = *inputs[0];  // [batch, time, in]
  const std::int64_t batch = x.dim(0), time = x.dim(1), hidden = hidden_, gates = 4 * hidden_;
  const std::string input = std::string(call.layer) + ".input";
  Tensor from_input({batch, time, gates});
  dense_forward(call, {input}, x, parameters_[0].value, from_input);
  add_bias(parameters_[2].value, from_input);

  const std::string recurrent = std::string(call.layer) + ".recurrent";
  Tensor state({batch, hidden}), from_state({batch, gates});
  std::vector<float> cells(static_cast<std::size_t>(batch * hidden));
  if (call.context != nullptr) *call.context = Tensor({batch, time, kKept * hidden});
  float* const context = call.context != nullptr ? call.context->data.data() : nullptr;
  for (std::int64_t t = 0; t < time; ++t) {
    if (t > 0)
      dense_forward(call, {recurrent, t - 1, time - 1}, state, parameters_[1].value, from_state);
    for_each_unit(batch, hidden, [&](std::int64_t sample, std::int64_t j) {
      const std::int64_t row = sample * time + t;
      const float* const z = from_input.data.data() + row * gates + j;
      const float* const r = from_state.data.data() + sample * gates + j;
      const auto gate = [=](std::int64_t g) { return z[g * hidden] + r[g * hidden]; };
      const float in = sigmoid(gate(0)), forget = sigmoid(gate(1));
      const float candidate = tanh(gate(2)), out = sigmoid(gate(3));
      float& c = cells[sample * hidden + j];
      c = neutral(forget * c + in * candidate);
      const float h = neutral(out * tanh(c));
      state.data[sample * hidden + j] = h;
      output.data[row * hidden + j] = h;
      if (context == nullptr) return;
      float* const kept = context + row * kKept * hidden + j;
      kept[0] = in, kept[hidden] = forget, kept[2 * hidden] = candidate, kept[3 * hidden] = out;
      kept[4 * hidden] = c;
    });
  }
}

void Lstm::backward(const OpCall& call, std::span<const Tensor* const> inputs, const Tensor*,
                    const Tensor& grad_output, std::span<Tensor> grad_inputs,
                    std::span<Tensor> grad_parameters, bool want_inputs) const {
  const Tensor &x = *inputs[0], &g = grad_output;  // [batch, time, in], [batch, time, hidden]
  const std::int64_t batch = x.dim(0), time = x.dim(1), hidden = hidden_, gates = 4 * hidden_;
  if (call.kept == nullptr || call.kept->shape != Shape{batch, time, kKept * hidden}) {
    throw Error(std::string(call.layer) + ": lstm: the gates of forward are needed for backward");
  }
  const float* const context = call.kept->data.data();
  const std::string recurrent = std::string(call.layer) + ".recurrent";
  Tensor states({batch, time, hidden});     // the outputs again, as the recurrence saw them
  Tensor grad_gates({batch, time, gates});  // of the sums before the gates
  Tensor grad_step({batch, gates}), grad_state({batch, hidden});
  std::vector<float> grad_cells(static_cast<std::size_t>(batch * hidden));
  for (std::int64_t t = time - 1; t >= 0; --t) {
    for_each_unit(batch, hidden, [&](std::int64_t sample, std::int64_t j) {
      const std::int64_t row = sample * time + t;
      const float* const kept = context + row * kKept * hidden + j;
      const float in = kept[0], forget = kept[hidden], candidate = kept[2 * hidden];
      const float out = kept[3 * hidden], c = kept[4 * hidden], squashed = tanh(c);
      const float before = t > 0 ? kept[(4 - kKept) * hidden] : 0;  // the cell a step earlier
      float& grad_c = grad_cells[sample * hidden + j];
      const float grad_h = g.data[row * hidden + j] + grad_state.data[sample * hidden + j];
      states.data[row * hidden + j] = neutral(out * squashed);
      grad_c += grad_h * out * (1 - squashed * squashed);
      const float z[4] = {
          grad_c * candidate * in * (1 - in), grad_c * before * forget * (1 - forget),
          grad_c * in * (1 - candidate * candidate), grad_h * squashed * out * (1 - out)};
      for (std::int64_t gate = 0; gate < 4; ++gate) {
        grad_gates.data[row * gates + gate * hidden + j] = neutral(z[gate]);
        grad_step.data[sample * gates + gate * hidden + j] = neutral(z[gate]);
      }
      grad_c = neutral(grad_c * forget);
    });
    if (t > 0)
      dense_input_gradient(call, {recurrent, time - 1 - t, time - 1}, grad_step,
                           parameters_[1].value, grad_state);
  }
  bias_gradient(grad_gates, grad_parameters[2]);
  if (time > 1) {
    // Gates of steps 1.. with the states a step earlier.
    Gather a = Gather::matrix(gates, batch * time, true),
           b = Gather::matrix(hidden, batch * time, true);
    a.depth = rows_of_steps(batch, time, gates, 1, time);
    b.depth = rows_of_steps(batch, time, hidden, 0, time - 1);
    call.numerics.product(call.step, {recurrent,
                                      GemmKind::wgrad,
                                      gates,
                                      hidden,
                                      batch * (time - 1),
                                      {&grad_gates, &a, Role::gradient, {.width = gates}, true},
                                      {&states, &b, Role::activation, {.width = hidden}, true},
                                      grad_parameters[1].data.data(),
                                      {.width = hidden}});
  }
  const std::string input = std::string(call.layer) + ".input";
  dense_weight_gradient(call, {input}, grad_gates, x, grad_parameters[0]);
  if (want_inputs)
    dense_input_gradient(call, {input}, grad_gates, parameters_[0].value, grad_inputs[0]);
}

}  // namespace numemu::net
