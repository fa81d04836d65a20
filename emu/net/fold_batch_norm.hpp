// Batch normalisation folded into the weights before it, as inference engines do.
#pragma once
#include "emu/net/graph.hpp"

namespace numemu::net {

/// Every batch_norm that alone reads a convolution or linear disappears into it:
/// w' = w g / sqrt(v + e), b' = (b - m) g / sqrt(v + e) + c with weight g, bias c, running mean m
/// and variance v, in float64, each rounded once. Returns how many were folded. The graph is for
/// inference then: batch statistics are gone.
int fold_batch_norm(Graph&);

}  // namespace numemu::net
