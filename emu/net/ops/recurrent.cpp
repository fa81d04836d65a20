// The walk there and back; then a step of each cell in both directions.
#include "emu/net/ops/recurrent.hpp"

#include <algorithm>

#include "emu/net/math.hpp"
#include "emu/net/ops/linear.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

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
  unit::Gather a = unit::Gather::matrix(out, batch * time, true),
               b = unit::Gather::matrix(in, batch * rows, true);
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

Recurrent::Recurrent(std::string_view kind, const RecurrentOptions& options, const Form& form,
                     Use initial)
    : Op({.kind = kind,
          .result = ResultKind::product,
          .inputs = {Use::linear, initial, initial},
          .products = form.candidate
                          ? std::vector<OpProduct>{{kInput, 0}, {kRecurrent, 1}, {kCandidate, 3}}
                          : std::vector<OpProduct>{{kInput, 0}, {kRecurrent, 1}}}),
      options_(options),
      form_(form) {
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

Shape Recurrent::output_shape(Shapes inputs) const {
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

OperatorMemory Recurrent::memory(Shapes inputs) const {
  const Form& f = form_;
  const std::int64_t state = inputs[0][0] * options_.hidden, states = state * inputs[0][1];
  const std::int64_t now = (2 + f.gates) * state;
  const std::int64_t own = (f.own_sums ? f.recurrent_gates() : 0) + (f.candidate ? 3 : 0);
  return {f.gates * states + now + (f.candidate ? 2 * state : 0),
          (1 + f.gates + own) * states + (options_.initial ? state : 0) + now +
              (f.own_sums ? 3 * state : 0),
          f.kept * states};
}

void Recurrent::forward(const OpCall& call, OpInputs inputs, Tensor& output) const {
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

void Recurrent::backward(const OpCall& call, const OpBackward& back) const {
  const Tensor &x = *back.inputs[0],
               &g = back.grad_output;  // [batch, time, in], [batch, time, outputs hidden]
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
  const Tensor* const initial = options_.initial ? back.inputs[1] : nullptr;
  const Tensor* const initial_cells =
      options_.initial && form_.states > 1 ? back.inputs[2] : nullptr;
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
  bias_gradient(grad_gates, back.grad_parameters[2]);
  weight_gradient(call, recurrent, form_.own_sums ? own_sums : grad_gates, states, 1 - lead,
                  back.grad_parameters[1]);
  if (form_.candidate) {
    weight_gradient(call, layer + kCandidate, grad_candidate, reset, 0, back.grad_parameters[3]);
  } else if (form_.own_sums) {
    bias_gradient(own_sums, back.grad_parameters[3]);
  }
  dense_weight_gradient(call, {input}, grad_gates, x, back.grad_parameters[0]);
  if (!back.want_inputs) return;
  dense_input_gradient(call, {input}, grad_gates, parameters_[0].value, back.grad_inputs[0]);
  if (initial != nullptr) back.grad_inputs[1].data = grad_state.data;
  if (initial_cells != nullptr) back.grad_inputs[2].data = grad_cells;
}

void Rnn::advance(const StepOf& s, const Forward& f) const {
  const std::int64_t hidden = options_.hidden;
  for_each_unit(s.batch, [&](std::int64_t sample, std::int64_t j) {
    const std::int64_t at = sample * hidden + j, out = (sample * s.time + s.t) * hidden + j;
    const float sum = f.input_sums[out] + f.state_sums[at];
    const float h = rectified_ ? (sum <= 0 ? 0 : neutral(sum)) : neutral(tanh(sum));
    f.state.data[at] = f.output[out] = h;
    if (f.kept != nullptr) f.kept[out] = h;
  });
}

void Rnn::retreat(const StepOf& s, const Backward& b) const {
  const std::int64_t hidden = options_.hidden;
  for_each_unit(s.batch, [&](std::int64_t sample, std::int64_t j) {
    const std::int64_t at = sample * hidden + j, out = (sample * s.time + s.t) * hidden + j;
    const float h = b.kept[out], g = b.grad_output[out] + b.grad_state[at];
    const float slope = rectified_ ? (h <= 0 ? 0.0f : 1.0f) : 1 - h * h;
    b.states[(sample * b.rows + b.first + s.t) * hidden + j] = h;
    b.grad_sums[out] = b.grad_step[at] = neutral(g * slope);
  });
}

namespace {

// A step of the context holds per sample: sigmoid(i), sigmoid(f), tanh(g), sigmoid(o), c.
constexpr std::int64_t kKept = 5;

}  // namespace

Lstm::Lstm(const RecurrentOptions& options, bool cells)
    : Recurrent("lstm", options,
                {.gates = 4, .kept = kKept, .states = 2, .outputs = cells ? 2 : 1}) {}

void Lstm::advance(const StepOf& s, const Forward& f) const {
  const std::int64_t hidden = options_.hidden, gates = 4 * hidden, width = form_.outputs * hidden;
  float* const states = f.state.data.data();
  for_each_unit(s.batch, [&](std::int64_t sample, std::int64_t j) {
    const std::int64_t row = sample * s.time + s.t;
    const float* const z = f.input_sums + row * gates + j;
    const float* const r = f.state_sums + sample * gates + j;
    const auto gate = [=](std::int64_t g) { return z[g * hidden] + r[g * hidden]; };
    const float in = sigmoid(gate(0)), forget = sigmoid(gate(1));
    const float candidate = tanh(gate(2)), out = sigmoid(gate(3));
    float& c = f.cells[sample * hidden + j];
    c = neutral(forget * c + in * candidate);
    const float h = neutral(out * tanh(c));
    states[sample * hidden + j] = h;
    f.output[row * width + j] = h;
    if (width > hidden) f.output[row * width + hidden + j] = c;
    if (f.kept == nullptr) return;
    float* const kept = f.kept + row * kKept * hidden + j;
    kept[0] = in, kept[hidden] = forget, kept[2 * hidden] = candidate, kept[3 * hidden] = out;
    kept[4 * hidden] = c;
  });
}

void Lstm::retreat(const StepOf& s, const Backward& b) const {
  const std::int64_t hidden = options_.hidden, gates = 4 * hidden, width = form_.outputs * hidden;
  for_each_unit(s.batch, [&](std::int64_t sample, std::int64_t j) {
    const std::int64_t row = sample * s.time + s.t, at = sample * hidden + j;
    const float* const kept = b.kept + row * kKept * hidden + j;
    const float in = kept[0], forget = kept[hidden], candidate = kept[2 * hidden];
    const float out = kept[3 * hidden], c = kept[4 * hidden], squashed = tanh(c);
    const float first = b.initial_cells == nullptr ? 0 : b.initial_cells[at];
    const float before = s.t > 0 ? kept[(4 - kKept) * hidden] : first;  // the cell a step earlier
    float& grad_c = b.grad_cells[at];
    const float grad_h = b.grad_output[row * width + j] + b.grad_state[at];
    if (width > hidden) grad_c += b.grad_output[row * width + hidden + j];
    b.states[(sample * b.rows + b.first + s.t) * hidden + j] = neutral(out * squashed);
    grad_c += grad_h * out * (1 - squashed * squashed);
    const float z[4] = {grad_c * candidate * in * (1 - in), grad_c * before * forget * (1 - forget),
                        grad_c * in * (1 - candidate * candidate),
                        grad_h * squashed * out * (1 - out)};
    for (std::int64_t gate = 0; gate < 4; ++gate) {
      b.grad_sums[row * gates + gate * hidden + j] = neutral(z[gate]);
      b.grad_step[sample * gates + gate * hidden + j] = neutral(z[gate]);
    }
    grad_c = neutral(grad_c * forget);
  });
}

namespace {

// A step of the context holds per sample: z, r, n, h, and b where the reset follows the product.
enum Kept : std::int64_t { kUpdate, kReset, kNew, kState, kSum };

}  // namespace

Gru::Gru(const RecurrentOptions& options, bool reset_after)
    : Recurrent(
          "gru", options,
          {.gates = 3, .kept = reset_after ? 5 : 4, .own_sums = true, .candidate = !reset_after},
          // It is a factor of the update gate's gradient and of what that multiplies.
          Use::statistic) {}

void Gru::advance(const StepOf& s, const Forward& f) const {
  const std::int64_t hidden = options_.hidden, width = form_.kept;
  const std::int64_t rows = form_.recurrent_gates() * hidden;
  float* const states = f.state.data.data();
  const auto gate = [=](std::int64_t sample, std::int64_t g, std::int64_t j) {
    return sigmoid(f.input_sums[((sample * s.time + s.t) * 3 + g) * hidden + j] +
                   f.state_sums[sample * rows + g * hidden + j]);
  };
  Tensor candidates;  // of the reset states
  if (form_.candidate) {
    candidates = Tensor(f.state.shape);
    Tensor reset(f.state.shape);
    for_each_unit(s.batch, [&](std::int64_t sample, std::int64_t j) {
      const std::int64_t at = sample * hidden + j;
      reset.data[at] = neutral(gate(sample, 1, j) * states[at]);
    });
    const std::string layer = std::string(s.call.layer) + kCandidate;
    if (!s.from_zero)
      dense_forward(s.call, {layer, s.repetition, s.repetitions}, reset, parameters_[3].value,
                    candidates);
  }
  for_each_unit(s.batch, [&](std::int64_t sample, std::int64_t j) {
    const std::int64_t row = sample * s.time + s.t, at = sample * hidden + j;
    const float update = gate(sample, 0, j), reset = gate(sample, 1, j);
    const float sum =
        form_.candidate ? candidates.data[at] : f.state_sums[sample * rows + 2 * hidden + j];
    const float fresh =
        tanh(f.input_sums[(row * 3 + 2) * hidden + j] + (form_.candidate ? sum : reset * sum));
    const float h = neutral((1 - update) * fresh + update * states[at]);
    states[at] = h;
    f.output[row * hidden + j] = h;
    if (f.kept == nullptr) return;
    float* const kept = f.kept + row * width * hidden + j;
    kept[kUpdate * hidden] = update, kept[kReset * hidden] = reset;
    kept[kNew * hidden] = fresh, kept[kState * hidden] = h;
    if (!form_.candidate) kept[kSum * hidden] = neutral(sum);
  });
}

void Gru::retreat(const StepOf& s, const Backward& b) const {
  const std::int64_t hidden = options_.hidden, width = form_.kept;
  const std::int64_t rows = form_.recurrent_gates() * hidden;
  // The sum `g` of unit j in both gradients of the recurrent sums.
  const auto set_own = [&](std::int64_t sample, std::int64_t g, std::int64_t j, float value) {
    b.grad_own_sums[(sample * s.time + s.t) * rows + g * hidden + j] = neutral(value);
    b.grad_step[sample * rows + g * hidden + j] = neutral(value);
  };
  // h a step earlier.
  const auto before = [&](std::int64_t sample, std::int64_t j) {
    if (s.t > 0) return b.kept[((sample * s.time + s.t - 1) * width + kState) * hidden + j];
    return b.initial_state == nullptr ? 0.0f : b.initial_state[sample * hidden + j];
  };
  Tensor grad_new, grad_reset;  // of the sum under tanh, and of r h
  if (form_.candidate) grad_new = grad_reset = Tensor({s.batch, hidden});
  for_each_unit(s.batch, [&](std::int64_t sample, std::int64_t j) {
    const std::int64_t row = sample * s.time + s.t, at = sample * hidden + j;
    const float* const kept = b.kept + row * width * hidden + j;
    const float update = kept[kUpdate * hidden], reset = kept[kReset * hidden];
    const float fresh = kept[kNew * hidden];
    const float grad_h = b.grad_output[row * hidden + j] + b.grad_state[at];
    float* const sums = b.grad_sums + row * 3 * hidden + j;
    b.states[(sample * b.rows + b.first + s.t) * hidden + j] = kept[kState * hidden];
    sums[0] = neutral(grad_h * (before(sample, j) - fresh) * update * (1 - update));
    sums[2 * hidden] = neutral(grad_h * (1 - update) * (1 - fresh * fresh));
    set_own(sample, 0, j, sums[0]);
    b.carry[at] = neutral(grad_h * update);
    if (form_.candidate) {
      grad_new.data[at] = b.grad_candidate[row * hidden + j] = sums[2 * hidden];
      b.reset[row * hidden + j] = neutral(reset * before(sample, j));
      return;
    }
    sums[hidden] = neutral(sums[2 * hidden] * kept[kSum * hidden] * reset * (1 - reset));
    set_own(sample, 1, j, sums[hidden]);
    set_own(sample, 2, j, sums[2 * hidden] * reset);
  });
  if (!form_.candidate) return;
  const std::string layer = std::string(s.call.layer) + kCandidate;
  if (!s.from_zero)
    dense_input_gradient(s.call, {layer, s.repetition, s.repetitions}, grad_new,
                         parameters_[3].value, grad_reset);
  for_each_unit(s.batch, [&](std::int64_t sample, std::int64_t j) {
    const std::int64_t row = sample * s.time + s.t, at = sample * hidden + j;
    const float reset = b.kept[(row * width + kReset) * hidden + j], g = grad_reset.data[at];
    float& sum = b.grad_sums[(row * 3 + 1) * hidden + j];
    sum = neutral(g * before(sample, j) * reset * (1 - reset));
    set_own(sample, 1, j, sum);
    b.carry[at] = neutral(b.carry[at] + g * reset);
  });
}

}  // namespace numemu::net
