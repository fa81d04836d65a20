// The graph: adding operators in topological order, and its parameters.
#include "emu/net/graph.hpp"

#include <utility>

#include "formats/error.hpp"

namespace numemu::net {

std::string_view Graph::value_name(int value) const {
  const std::size_t number = static_cast<std::size_t>(value);
  if (number < inputs.size()) return inputs[number].name;
  return nodes.at(number - inputs.size()).name;
}

int Graph::add(std::string node_name, std::unique_ptr<Op> op, std::vector<int> reads) {
  const int last = static_cast<int>(value_count()) - 1;
  for (int& v : reads) {
    if (v == kLast) v = last;
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
  nodes.push_back({std::move(node_name), std::move(op), std::move(reads)});
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
  for (const Parameter* parameter : parameters()) {
    if (parameter->trained) count += parameter->value.size();
  }
  return count;
}

void apply_buffers(Graph& graph, std::vector<NodeBuffer> buffers) {
  for (NodeBuffer& buffer : buffers) {
    graph.nodes.at(buffer.node).op->parameters()[buffer.update.parameter].value =
        std::move(buffer.update.value);
  }
}

}  // namespace numemu::net
