// A pass that shows what each node reads; forward() itself stands in graph.hpp.
#pragma once
#include <functional>
#include <span>

#include "emu/net/graph.hpp"

namespace numemu::net {

/// forward() that calls `made` with every value as later nodes read it, the inputs first, then what
/// the nodes give: behind the hook `edge`, where an Observer stands before it.
Tensor forward_values(const Graph&, std::span<const Tensor> inputs, Numerics&, const Step&,
                      const std::function<void(int value, const Tensor&)>& made);

}  // namespace numemu::net
