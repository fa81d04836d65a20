// Evaluation of a network whose weights changed: scores that compare with float32, such as the
// cosine of outputs, then compare with the network before, not with its new weights.
#pragma once
#include "emu/net/train/evaluate.hpp"

namespace numemu::net {

/// evaluate() of `graph`; scores with `reference` get the outputs of the graph of that name in
/// float32, which has the same inputs and outputs.
Evaluation evaluate_against(const Graph& graph, const Graph& reference, const Dataset&, Split,
                            std::int64_t count, Numerics&, const std::vector<const Score*>& = {},
                            std::int64_t batch = kEvaluationBatch);

}  // namespace numemu::net
