// The forward passes, and what those in training keep for backward.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::net {

struct BackwardPlan;

/// What forward keeps for backward: one entry per value and use, one context per node.
struct Tape {
  std::vector<Shape> shapes;
  std::vector<std::array<Saved, kUses>> values;
  std::vector<Uses> kept;
  std::vector<Saved> contexts;
  std::vector<Shape> context_shapes;  ///< {} with no elements: the node left none
  std::vector<NodeBuffer> buffers;    ///< for apply_buffers()
  std::uint64_t seed = 0;
  Step step = {};
  Tensor output;
};

/// Called after every node with its output, before the hook `edge`; for probes and reports.
using Observer = std::function<void(const Node&, const Tensor&)>;

/// The result for a batch of every input ([batch, shape...]); the numerics are told the step.
/// Reentrant: several threads may run one graph at once.
Tensor forward(const Graph&, std::span<const Tensor> inputs, Numerics&, const Step& = {},
               const Observer* = nullptr);
/// Of a packed batch (unpacked()) where the network has several inputs.
Tensor forward(const Graph&, const Tensor& x, Numerics&, const Step& = {},
               const Observer* = nullptr);
/// forward() that calls `made` with every value as later nodes read it, the inputs first, then what
/// the nodes give: behind the hook `edge`, where an Observer stands before it.
Tensor forward_values(const Graph&, std::span<const Tensor> inputs, Numerics&, const Step&,
                      const std::function<void(int value, const Tensor&)>& made);
/// forward() in training, keeping what backward needs. `seed` and the step's index decide dropout.
/// The samples of the step must outlive the tape.
Tape forward_training(const Graph&, std::span<const Tensor> inputs, Numerics&,
                      const Step& = {.phase = Phase::training}, std::uint64_t seed = 0);
Tape forward_training(const Graph&, const Tensor& x, Numerics&,
                      const Step& = {.phase = Phase::training}, std::uint64_t seed = 0);
/// forward_training() that keeps what the plan needs. `made` is called with every value as the next
/// operators read it, in order.
Tape forward_training(const Graph&, std::span<const Tensor> inputs, Numerics&, const Step&,
                      std::uint64_t seed, const BackwardPlan&,
                      const std::function<void(int value, const Tensor&)>& made);

}  // namespace numemu::net
