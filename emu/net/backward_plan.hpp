// The plan of the backward pass: the gradients to compute, and the values to keep for them; the
// passes along any plan.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::net {

struct BackwardPlan {
  /// Per value: a parameter or a wanted value before it, or it itself, needs its gradient.
  std::vector<bool> gradient;
  std::vector<bool> node;    ///< per node: its backward runs
  std::vector<bool> wanted;  ///< per value: its gradient is a result
  std::vector<Uses> kept;    ///< per value: what the backward of operators reads it for
  std::vector<int>
      last_reader;  ///< per kept value: the node whose backward reads it last (the lowest)
};

/// Gradients enter at the output and leave at the parameters.
BackwardPlan plan_backward(const Graph&);
/// Gradients enter at the values `ends`, and leave at the parameters and at the values `wanted`.
BackwardPlan plan_backward(const Graph&, std::span<const int> ends, std::span<const int> wanted);

/// forward_training() that keeps what the plan needs. `made` is called with every value as the next
/// operators read it, in order.
Tape forward_training(const Graph&, std::span<const Tensor> inputs, Numerics&, const Step&,
                      std::uint64_t seed, const BackwardPlan&,
                      const std::function<void(int value, const Tensor&)>& made);
/// backward() along the tape's plan. `parts` holds per value the gradients that enter there; they
/// are the last terms of its gradient. `values`, one per value, gets the wanted ones that a
/// gradient reaches, before their edge moment.
std::vector<Tensor> backward(const Graph&, Tape, std::vector<std::vector<Tensor>> parts, Numerics&,
                             const BackwardPlan&, std::vector<Tensor>* values = nullptr);

}  // namespace numemu::net
