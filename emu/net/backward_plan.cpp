// The plan: a value's gradient is needed if a parameter lies before it and the output behind it.
#include "emu/net/backward_plan.hpp"

namespace numemu::net {

BackwardPlan plan_backward(const Graph& graph) {
  const std::size_t nodes = graph.nodes.size(), values = graph.value_count();
  std::vector<bool> learns(values, false), reaches(values, false);
  for (std::size_t i = 0; i < nodes; ++i) {
    const int own = graph.value_of(i);
    for (const Parameter& parameter : std::as_const(*graph.nodes[i].op).parameters())
      learns[own] = learns[own] || parameter.trained;
    for (const int v : graph.nodes[i].inputs) learns[own] = learns[own] || learns[v];
  }
  reaches[values - 1] = true;
  for (std::size_t i = nodes; i-- > 0;) {
    for (const int v : graph.nodes[i].inputs) reaches[v] = reaches[v] || reaches[graph.value_of(i)];
  }
  BackwardPlan plan{std::vector<bool>(values), std::vector<Uses>(values),
                    std::vector<int>(values, -1)};
  for (std::size_t v = 0; v < values; ++v) plan.gradient[v] = learns[v] && reaches[v];
  const auto keep = [&](int value, std::optional<Use> use, std::size_t reader) {
    if (!use) return;
    plan.kept[value].set(static_cast<std::size_t>(*use));
    plan.last_reader[value] = static_cast<int>(reader);
  };
  for (std::size_t i = nodes; i-- > 0;) {
    const int own = graph.value_of(i);
    if (!plan.gradient[own]) continue;
    const Node& node = graph.nodes[i];
    keep(own, node.op->output_use(), i);
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      keep(node.inputs[k], node.op->input_use(k), i);
  }
  return plan;
}

}  // namespace numemu::net
