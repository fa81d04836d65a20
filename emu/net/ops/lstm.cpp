// A step of the LSTM there, and back by hand.
#include "emu/net/ops/lstm.hpp"

#include "emu/net/math.hpp"

namespace numemu::net {
namespace {

// A step of the context holds per sample: sigmoid(i), sigmoid(f), tanh(g), sigmoid(o), c.
constexpr std::int64_t kKept = 5;

}  // namespace

Lstm::Lstm(const RecurrentOptions& options, bool cells)
    : Recurrent(options, {.gates = 4, .kept = kKept, .states = 2, .outputs = cells ? 2 : 1}) {}

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

}  // namespace numemu::net
