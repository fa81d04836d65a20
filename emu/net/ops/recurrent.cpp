#include "emu/net/ops/recurrent.hpp"

#include <algorithm>

#include "emu/net/ops/bias.hpp"
#include "emu/net/ops/dense.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using unit::Gather;

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

// Gradients [batch, time, out] of steps first.. with what they multiplied, [batch, rows, in] from
// row 0 on, to the gradient of the weights [out, in].
void weight_gradient(const OpCall& call, const std::string& layer, const Tensor& grads,
                     const Tensor& states, std::int64_t first, Tensor& gradient) {
  const std::int64_t batch = grads.dim(0), time = grads.dim(1), out = grads.dim(2);
  const std::int64_t rows = states.dim(1), in = states.dim(2), steps = time - first;
  if (steps == 0 || gradient.empty()) return;
  Gather a = Gather::matrix(out, batch * time, true), b = Gather::matrix(in, batch * rows, true);
  a.depth = rows_of_steps(batch, time, out, first, time);
  b.depth = rows_of_steps(batch, rows, in, 0, steps);
  call.numerics.product(call.step, {layer,
                                    GemmKind::wgrad,
                                    out,
                                    in,
                                    batch * steps,
                                    {&grads, &a, Role::gradient, {.width = out}, true},
                                    {&states, &b, Role::activation, {.width = in}, true},
                                    gradient.data.data(),
                                    {.width = in}});
}

void fill_rows(const Tensor& row, Tensor& rows) {
  for (std::int64_t i = 0; i < rows.size(); ++i) rows.data[i] = row.data[i % row.size()];
}

}  // namespace

Recurrent::Recurrent(const RecurrentOptions& options, const Form& form)
    : options_(options), form_(form) {
  const std::int64_t in = options.in, hidden = options.hidden;
  if (in < 1 || hidden < 1)
    throw Error("expected positive numbers of inputs and hidden units of a recurrent layer");
  // Both products are summed into a gate.
  const std::int64_t fan_in = in + hidden;
  parameters_.push_back({"weight", Tensor({form.gates * hidden, in}), fan_in});
  parameters_.push_back({"recurrent", Tensor({form.recurrent_gates() * hidden, hidden}), fan_in});
  parameters_.push_back({"bias", Tensor({form.gates * hidden}), 0});
  if (form.candidate)
    parameters_.push_back({"candidate", Tensor({hidden, hidden}), fan_in});
  else if (form.own_sums)
    parameters_.push_back({"recurrent_bias", Tensor({form.gates * hidden}), 0});
}

std::vector<OpProduct> Recurrent::products() const {
  std::vector<OpProduct> products{{kInput, 0}, {kRecurrent, 1}};
  if (form_.candidate) products.push_back({kCandidate, 3});
  return products;
}

Shape Recurrent::output_shape(std::span<const Shape> inputs) const {
  const auto count = static_cast<std::size_t>(options_.initial ? 1 + form_.states : 1);
  const Shape none;
  const Shape& x = inputs.empty() ? none : inputs[0];
  bool fits = inputs.size() == count && x.size() == 3 && x[2] == options_.in;
  for (std::size_t i = 1; fits && i < count; ++i) fits = inputs[i] == Shape{x[0], options_.hidden};
  if (!fits) {
    std::string found;
    for (const Shape& shape : inputs) found += (found.empty() ? "" : " and ") + to_string(shape);
    throw Error(std::string(kind()) + ": expected an input [batch, time, " +
                std::to_string(options_.in) + "]" +
                (count == 1 ? ""
                            : " and " + std::to_string(count - 1) + " states [batch, " +
                                  std::to_string(options_.hidden) + "]") +
                ", got " + (found.empty() ? "none" : found));
  }
  return {x[0], x[1], form_.outputs * options_.hidden};
}

OperatorMemory Recurrent::memory(std::span<const Shape> inputs) const {
  const Form& f = form_;
  const std::int64_t state = inputs[0][0] * options_.hidden, states = state * inputs[0][1];
  const std::int64_t now = (2 + f.gates) * state;
  const std::int64_t own = (f.own_sums ? f.recurrent_gates() : 0) + (f.candidate ? 3 : 0);
  return {f.gates * states + now + (f.candidate ? 2 * state : 0),
          (1 + f.gates + own) * states + (options_.initial ? state : 0) + now +
              (f.own_sums ? 3 * state : 0),
          f.kept * states};
}

void Recurrent::forward(const OpCall& call, std::span<const Tensor* const> inputs,
                        Tensor& output) const {
  const Tensor& x = *inputs[0];  // [batch, time, in]
  const std::int64_t batch = x.dim(0), time = x.dim(1), hidden = options_.hidden;
  const std::string layer(call.layer), input = layer + kInput, recurrent = layer + kRecurrent;
  Tensor from_input({batch, time, form_.gates * hidden});
  dense_forward(call, {input}, x, parameters_[0].value, from_input);
  add_bias(parameters_[2].value, from_input);

  Tensor state({batch, hidden}), from_state({batch, form_.recurrent_gates() * hidden});
  std::vector<float> cells(static_cast<std::size_t>(batch * hidden));
  if (options_.initial) state.data = inputs[1]->data;
  if (options_.initial && form_.states > 1) cells = inputs[2]->data;
  const bool biased = form_.own_sums && !form_.candidate;
  if (biased) fill_rows(parameters_[3].value, from_state);
  if (call.context != nullptr) *call.context = Tensor({batch, time, form_.kept * hidden});
  float* const context = call.context != nullptr ? call.context->data.data() : nullptr;
  const std::int64_t lead = options_.initial ? 1 : 0, repetitions = time - 1 + lead;
  for (std::int64_t t = 0; t < time; ++t) {
    const StepOf step{call, batch, time, t, t + lead == 0, t - 1 + lead, repetitions};
    if (!step.from_zero) {
      dense_forward(call, {recurrent, step.repetition, repetitions}, state, parameters_[1].value,
                    from_state);
      if (biased) add_bias(parameters_[3].value, from_state);
    }
    advance(step, {from_input.data.data(), from_state.data.data(), state, cells.data(), context,
                   output.data.data()});
  }
}

void Recurrent::backward(const OpCall& call, std::span<const Tensor* const> inputs, const Tensor*,
                         const Tensor& grad_output, std::span<Tensor> grad_inputs,
                         std::span<Tensor> grad_parameters, bool want_inputs) const {
  const Tensor &x = *inputs[0],
               &g = grad_output;  // [batch, time, in], [batch, time, outputs hidden]
  const std::int64_t batch = x.dim(0), time = x.dim(1), hidden = options_.hidden;
  if (call.kept == nullptr || call.kept->shape != Shape{batch, time, form_.kept * hidden}) {
    throw Error(std::string(call.layer) + ": " + std::string(kind()) +
                ": the gates of forward are needed for backward");
  }
  const std::string layer(call.layer), input = layer + kInput, recurrent = layer + kRecurrent;
  const std::int64_t lead = options_.initial ? 1 : 0, repetitions = time - 1 + lead;
  const std::int64_t rows = form_.recurrent_gates() * hidden;
  // What the recurrent products multiplied: the outputs as the recurrence saw them, behind the
  // initial state.
  Tensor states({batch, lead + time, hidden});
  const Tensor* const initial = options_.initial ? inputs[1] : nullptr;
  const Tensor* const initial_cells = options_.initial && form_.states > 1 ? inputs[2] : nullptr;
  for (std::int64_t n = 0; initial != nullptr && n < batch; ++n)
    std::copy_n(initial->data.data() + n * hidden, hidden,
                states.data.data() + n * (1 + time) * hidden);
  const auto made = [](bool wanted, Shape shape) { return wanted ? Tensor(shape) : Tensor(); };
  Tensor grad_gates({batch, time, form_.gates * hidden});  // of the sums before the gates
  Tensor own_sums = made(form_.own_sums, {batch, time, rows});
  Tensor reset = made(form_.candidate, {batch, time, hidden});
  Tensor grad_candidate = made(form_.candidate, {batch, time, hidden});
  Tensor carry = made(form_.own_sums, {batch, hidden});
  Tensor grad_step({batch, rows}), grad_state({batch, hidden});
  std::vector<float> grad_cells(static_cast<std::size_t>(batch * hidden));
  for (std::int64_t t = time - 1; t >= 0; --t) {
    const StepOf step{call, batch, time, t, t + lead == 0, time - 1 - t, repetitions};
    retreat(step, {call.kept->data.data(), initial == nullptr ? nullptr : initial->data.data(),
                   initial_cells == nullptr ? nullptr : initial_cells->data.data(), g.data.data(),
                   grad_state.data.data(), grad_cells.data(), states.data.data(), lead, lead + time,
                   grad_gates.data.data(), own_sums.data.data(), grad_step.data.data(),
                   carry.data.data(), reset.data.data(), grad_candidate.data.data()});
    if (step.from_zero) break;
    dense_input_gradient(call, {recurrent, step.repetition, repetitions}, grad_step,
                         parameters_[1].value, grad_state);
    for (std::int64_t i = 0; i < carry.size(); ++i)
      grad_state.data[i] = neutral(grad_state.data[i] + carry.data[i]);
  }
  bias_gradient(grad_gates, grad_parameters[2]);
  weight_gradient(call, recurrent, form_.own_sums ? own_sums : grad_gates, states, 1 - lead,
                  grad_parameters[1]);
  if (form_.candidate) {
    weight_gradient(call, layer + kCandidate, grad_candidate, reset, 0, grad_parameters[3]);
  } else if (form_.own_sums) {
    bias_gradient(own_sums, grad_parameters[3]);
  }
  dense_weight_gradient(call, {input}, grad_gates, x, grad_parameters[0]);
  if (!want_inputs) return;
  dense_input_gradient(call, {input}, grad_gates, parameters_[0].value, grad_inputs[0]);
  if (initial != nullptr) grad_inputs[1].data = grad_state.data;
  if (initial_cells != nullptr) grad_inputs[2].data = grad_cells;
}

}  // namespace numemu::net
