// A network: operators in topological order, each reading values by number; value 0 is the input.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

struct Node {
  std::string name;  ///< the layer name recipes match
  std::unique_ptr<Op> op;
  std::vector<int> inputs;  ///< value numbers; node i produces value i + 1
};

/// The float32 graph and its parameters.
struct Graph {
  std::string name;
  Shape input_shape;  ///< without the batch axis
  std::vector<Node> nodes;

  /// Appends a node that reads the last value (or `inputs`) and returns its value number.
  int add(std::string node_name, std::unique_ptr<Op> op, std::vector<int> inputs = {});
  /// Every parameter in node order.
  std::vector<Parameter*> parameters();
  std::vector<const Parameter*> parameters() const;
  std::int64_t parameter_count() const;
};

/// What forward keeps for backward: one entry per value.
struct Tape {
  std::vector<Shape> shapes;
  std::vector<Saved> values;
  std::vector<bool> kept;
  Tensor output;
};

/// Called after every node with its output, before the edge moment; for probes and reports.
using Observer = std::function<void(const Node&, const Tensor&)>;

/// The result for a batch `x` ([batch, input_shape...]). Reentrant: several threads may run one
/// graph at once.
Tensor forward(const Graph&, const Tensor& x, Numerics&, const Observer* = nullptr);
/// The same in training, keeping what backward needs.
Tape forward_training(const Graph&, const Tensor& x, Numerics&);
/// Gradients of every parameter (in parameters() order) given that of the output. A tape is used
/// once: move it in.
std::vector<Tensor> backward(const Graph&, Tape, Tensor grad_output, Numerics&);

/// He-normal weights, the last ones with deviation 1 / fan_in, and zero biases: a function of the
/// seed and the parameter's name.
void initialize(Graph&, std::uint64_t seed);

}  // namespace numemu::net
