// One training step: forward, loss, backward, update, and every moment of the numerics in a fixed
// order.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/ops/cross_entropy.hpp"
#include "emu/net/train/optimizer.hpp"

namespace numemu::net {

/// What a step works on.
struct StepInput {
  Tensor x;
  std::vector<std::uint8_t> labels;
  std::vector<std::int64_t> samples;  ///< ids
  std::int64_t index = 0;             ///< of the step in the run
  double learning_rate = 0;
};

struct StepResult {
  Classified seen;
  double gradient_norm = 0;  ///< of the unscaled gradients and penalties, before clipping
  float loss_scale = 1;
  bool accepted = true;
};

/// Trains `graph` by one step. The order of the moments is begin_step, loss_scale,
/// forward (product, vector_result, edge, save), backward (edge, restore, product),
/// accept_gradients on the unscaled gradients, and if they are accepted exchange, penalty for each
/// trained parameter, then for each of them update and optimizer_state; end_step. Running
/// statistics are renewed after forward, also where the gradients are not accepted.
StepResult training_step(Graph& graph, const StepInput&, const TrainOptions&, Optimizer&,
                         Numerics&);

}  // namespace numemu::net
