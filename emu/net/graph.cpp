// The graph: adding operators in topological order, and its parameters.
#include "emu/net/graph.hpp"

#include <utility>

#include "formats/error.hpp"

namespace numemu::net {

int Graph::add(std::string node_name, std::unique_ptr<Op> op, std::vector<int> inputs) {
  const int last = static_cast<int>(nodes.size());
  if (inputs.empty()) inputs.push_back(last);
  for (const int v : inputs) {
    if (v < 0 || v > last) {
      throw Error("network " + name + ": node " + node_name + " reads value " + std::to_string(v) +
                  " of " + std::to_string(last + 1));
    }
  }
  for (const Node& node : nodes) {
    if (node.name == node_name)
      throw Error("network " + name + ": two nodes are named " + node_name);
  }
  for (Parameter& parameter : op->parameters()) parameter.name = node_name + "." + parameter.name;
  nodes.push_back({std::move(node_name), std::move(op), std::move(inputs)});
  return last + 1;
}

std::vector<Parameter*> Graph::parameters() {
  std::vector<Parameter*> all;
  for (Node& node : nodes) {
    for (Parameter& parameter : node.op->parameters()) all.push_back(&parameter);
  }
  return all;
}

std::vector<const Parameter*> Graph::parameters() const {
  std::vector<const Parameter*> all;
  for (const Node& node : nodes) {
    for (const Parameter& parameter : std::as_const(*node.op).parameters())
      all.push_back(&parameter);
  }
  return all;
}

std::int64_t Graph::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter* parameter : parameters()) count += parameter->value.size();
  return count;
}

}  // namespace numemu::net
