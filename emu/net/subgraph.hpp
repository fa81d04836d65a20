// A part of a network as a network of its own.
#pragma once
#include <span>
#include <string>

#include "emu/net/graph.hpp"

namespace numemu::net {

/// The network that computes value `to` from the values `from`, its inputs in that order: the nodes
/// between, under their names. It shares the operators with `graph`, which must outlive it: the
/// parameters are the same objects, so that training or loading the part changes the whole. Code
/// that distinguishes operators by class (fold_batch_norm) does not see through it. Parts one after
/// the other compute the bits of the whole, forward and, with gradients(), backward. Throws Error
/// with the nearest known name for a value that is not there, and where `to` also depends on a
/// network input that is not among `from`, or not on one of `from`.
Graph subgraph(Graph& graph, std::span<const std::string> from, const std::string& to);

}  // namespace numemu::net
