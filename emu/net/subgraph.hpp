// A part of a network as a network of its own.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

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

/// subgraph() from those inputs of the network on which the value depends; `inputs` are their
/// places.
struct PartFromInputs {
  Graph graph;
  std::vector<std::size_t> inputs;

  /// Their tensors out of a batch of all inputs.
  std::vector<Tensor> read(std::vector<Tensor> batch) const;
};
PartFromInputs part_from_inputs(Graph& graph, const std::string& to);

}  // namespace numemu::net
