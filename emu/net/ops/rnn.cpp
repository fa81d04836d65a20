// A step of the plain recurrence there, and back.
#include "emu/net/ops/rnn.hpp"

#include "emu/net/math.hpp"

namespace numemu::net {

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

}  // namespace numemu::net
