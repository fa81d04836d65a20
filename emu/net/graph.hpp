// A network: operators in topological order, each reading values by number; the inputs come first.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

struct Node {
  std::string name;  ///< the layer name recipes match
  std::unique_ptr<Op> op;
  std::vector<int> inputs;  ///< value numbers
};

/// An input of a network: a float32 tensor [batch, shape...]; class and token numbers are floats
/// too.
using GraphInput = NamedShape;

struct GraphOutput {
  std::string name;
  int value = 0;  ///< its number
};

/// The float32 graph and its parameters. Values are numbered: the inputs, then the result of each
/// node. The last value is the network's output.
struct Graph {
  static constexpr int kLast = -1;  ///< the value before the node being added

  std::string name;
  std::vector<GraphInput> inputs;
  std::vector<Node> nodes;
  /// Those with names; the first is the last value. Empty: the last value alone, without a name.
  std::vector<GraphOutput> outputs = {};

  /// The number of the value that node i gives.
  int value_of(std::size_t node) const { return static_cast<int>(inputs.size() + node); }
  std::size_t value_count() const { return inputs.size() + nodes.size(); }
  /// "input" or its name, or the node's, of a value.
  std::string_view value_name(int value) const;

  /// Appends a node and returns its value number. Throws Error for a name that is taken and for
  /// values that are not there yet.
  int add(std::string node_name, std::unique_ptr<Op> op, std::vector<int> reads = {kLast});
  /// Every parameter in node order, untrained ones too.
  std::vector<Parameter*> parameters();
  std::vector<const Parameter*> parameters() const;
  /// Elements of all trained parameters.
  std::int64_t parameter_count() const;
};

/// A node's new running statistics.
struct NodeBuffer {
  std::size_t node = 0;
  BufferUpdate update;
};

/// Writes the running statistics of a training step into the graph.
void apply_buffers(Graph&, const std::vector<NodeBuffer>&);

/// He-normal weights, the last ones with deviation 1 / fan_in, all else its `initial` value: a
/// function of the seed and the parameter's name.
void initialize(Graph&, std::uint64_t seed);

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
