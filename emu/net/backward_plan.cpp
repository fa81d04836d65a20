// The plan: a value's gradient is needed if a parameter or a wanted value lies before it, and an
// entering gradient behind it.
#include "emu/net/backward_plan.hpp"

namespace numemu::net {

BackwardPlan plan_backward(const Graph& graph) {
  const int output[] = {static_cast<int>(graph.value_count()) - 1};
  return plan_backward(graph, output, {});
}

BackwardPlan plan_backward(const Graph& graph, std::span<const int> ends,
                           std::span<const int> wanted) {
  const std::size_t nodes = graph.nodes.size(), values = graph.value_count();
  std::vector<bool> learns(values, false), reaches(values, false);
  BackwardPlan plan{.gradient = std::vector<bool>(values),
                    .node = std::vector<bool>(nodes, false),
                    .wanted = std::vector<bool>(values, false),
                    .kept = std::vector<Uses>(values),
                    .last_reader = std::vector<int>(values, -1)};
  for (const int v : wanted) plan.wanted[v] = learns[v] = true;
  for (std::size_t i = 0; i < nodes; ++i) {
    const int own = graph.value_of(i);
    for (const Parameter& parameter : std::as_const(*graph.nodes[i].op).parameters())
      plan.node[i] = plan.node[i] || parameter.trained;
    for (const int v : graph.nodes[i].inputs) plan.node[i] = plan.node[i] || learns[v];
    learns[own] = learns[own] || plan.node[i];
  }
  for (const int v : ends) reaches[v] = true;
  for (std::size_t i = nodes; i-- > 0;) {
    const bool reached = reaches[graph.value_of(i)];
    for (const int v : graph.nodes[i].inputs) reaches[v] = reaches[v] || reached;
    plan.node[i] = plan.node[i] && reached;
  }
  for (std::size_t v = 0; v < values; ++v) plan.gradient[v] = learns[v] && reaches[v];
  const auto keep = [&](int value, std::optional<Use> use, std::size_t reader) {
    if (!use) return;
    plan.kept[value].set(static_cast<std::size_t>(*use));
    plan.last_reader[value] = static_cast<int>(reader);
  };
  for (std::size_t i = nodes; i-- > 0;) {
    if (!plan.node[i]) continue;
    const Node& node = graph.nodes[i];
    keep(graph.value_of(i), node.op->output_use(), i);
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      keep(node.inputs[k], node.op->input_use(k), i);
  }
  return plan;
}

}  // namespace numemu::net
