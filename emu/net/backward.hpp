// The backward pass: the plan of what it computes and keeps, the pass along any plan, and gradients
// of any values from gradients that enter at any values.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/forward.hpp"
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

/// Gradients of every parameter (in parameters() order, empty for untrained ones) given that of the
/// output. A tape is used once: move it in.
std::vector<Tensor> backward(const Graph&, Tape, Tensor grad_output, Numerics&);
/// backward() along the tape's plan. `parts` holds per value the gradients that enter there; they
/// are the last terms of its gradient. `values`, one per value, gets the wanted ones that a
/// gradient reaches, before their hook `edge`.
std::vector<Tensor> backward(const Graph&, Tape, std::vector<std::vector<Tensor>> parts, Numerics&,
                             const BackwardPlan&, std::vector<Tensor>* values = nullptr);

/// The number of the value of that name (an input's or a node's). Throws Error with the nearest.
int find_value(const Graph&, std::string_view name);

/// A gradient that enters the backward pass at a value, added to those of the value's readers.
struct Injection {
  std::string value;  ///< the name of an input or a node; the last node's is the output
  /// Given what forward computed, [batch, ...], the gradient of some scalar along it, of the same
  /// shape.
  std::function<Tensor(const Tensor&)> gradient;
};

struct Gradients {
  std::vector<Tensor> parameters;  ///< in parameters() order, empty for untrained ones
  std::vector<Tensor> values;      ///< of `want`, in its order, each of the shape of its value
  Tensor output;                   ///< of the network
};

/// The gradients of the sum of the injected scalars along every trained parameter and along the
/// values named in `want` (inputs, nodes). Token and class numbers have a gradient of zero. Without
/// an injection behind it a gradient is zero. Operators run as in a training step: batch
/// statistics, dropout drawn from `seed` and the step's index. The network is left as it is,
/// running statistics too. The bits are those of forward_training() and backward() where the
/// gradient of the output is injected alone; the injected part of a sum of gradients is its last
/// term. The memory budget counts a training step, not the values that are kept for `want`. Throws
/// Error with the nearest known name for a value that is not there, and for an injected gradient of
/// another shape.
Gradients gradients(const Graph&, std::span<const Tensor> inputs, Numerics&, const Step&,
                    std::span<const std::string> want, std::span<const Injection> inject,
                    std::uint64_t seed = 0);

}  // namespace numemu::net
