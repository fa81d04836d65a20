// The plan of the backward pass: the gradients to compute, and the values to keep for them.
#pragma once
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::net {

struct BackwardPlan {
  std::vector<bool> gradient;  ///< per value: a parameter before it learns from its gradient
  std::vector<Uses> kept;      ///< per value: what the backward of operators reads it for
  std::vector<int>
      last_reader;  ///< per kept value: the node whose backward reads it last (the lowest)
};

BackwardPlan plan_backward(const Graph&);

}  // namespace numemu::net
