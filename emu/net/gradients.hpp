// Gradients of parameters and of any values of a network, from gradients that enter at any values.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::net {

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
