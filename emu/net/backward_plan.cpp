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
  BackwardPlan plan{std::vector<bool>(values), std::vector<bool>(values, false),
                    std::vector<int>(values, -1)};
  for (std::size_t v = 0; v < values; ++v) plan.gradient[v] = learns[v] && reaches[v];
  const auto keep = [&](int value, std::size_t reader) {
    plan.kept[value] = true;
    plan.last_reader[value] = static_cast<int>(reader);
  };
  for (std::size_t i = nodes; i-- > 0;) {
    const int own = graph.value_of(i);
    if (!plan.gradient[own]) continue;
    if (graph.nodes[i].op->needs_output()) keep(own, i);
    if (!graph.nodes[i].op->needs_inputs()) continue;
    for (const int v : graph.nodes[i].inputs) keep(v, i);
  }
  return plan;
}

}  // namespace numemu::net
