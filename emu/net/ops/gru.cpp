// A step of the GRU there, and back by hand; what is reset is a sum or the state.
#include "emu/net/ops/gru.hpp"

#include "emu/net/math.hpp"
#include "emu/net/ops/dense.hpp"

namespace numemu::net {
namespace {

// A step of the context holds per sample: z, r, n, h, and b where the reset follows the product.
enum Kept : std::int64_t { kUpdate, kReset, kNew, kState, kSum };

}  // namespace

Gru::Gru(const RecurrentOptions& options, bool reset_after)
    : Recurrent(
          options,
          {.gates = 3, .kept = reset_after ? 5 : 4, .own_sums = true, .candidate = !reset_after}) {}

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
