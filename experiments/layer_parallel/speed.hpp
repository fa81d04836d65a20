// How fast stages train that wait for their neighbours alone: the period of their rounds in closed
// form, and a simulation.
#pragma once
#include <cstdint>
#include <vector>

#include "experiments/delayed_weights/pipeline.hpp"

namespace numemu::experiments::layer_parallel {

using delayed_weights::Ticks;

/// Every stage computes forward and backward on its own variables, `rounds` times in a step, and
/// sends what it found to both neighbours, who need it in their next round; the last of each
/// `serial_every` steps passes through the stages forward and backward, 0: none does.
struct Rounds {
  std::vector<delayed_weights::Stage> stages;  ///< times of passes, and of links
  std::int64_t rounds = 1;
  std::int64_t serial_every = 0;

  Ticks serial() const;  ///< a step on one device, without links
  /// Of a round, where stages wait for neighbours alone: the largest mean of a cycle of waits,
  /// max(c_k, (c_k + c_k+1) / 2 + l_k), c_k a stage's passes and l_k its link to the next.
  double period() const;
  /// Time of a step, the mean over `serial_every` of them.
  double step_time() const;
  double speed_up() const { return static_cast<double>(serial()) / step_time(); }
};

/// When the last stage is through with so many steps, each pass as soon as its inputs are there.
Ticks simulated_time(const Rounds&, std::int64_t steps);

}  // namespace numemu::experiments::layer_parallel
