#include "tests/oracle/min_cost_flow.hpp"

#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

#include <stdexcept>
#include <vector>

namespace numemu::testing {

std::int64_t most_by_flow(const std::int64_t* costs, int size, int kept) {
  lemon::SmartDigraph graph;
  std::vector<lemon::SmartDigraph::Node> rows, columns;
  for (int i = 0; i < size; ++i) rows.push_back(graph.addNode());
  for (int j = 0; j < size; ++j) columns.push_back(graph.addNode());
  const lemon::SmartDigraph::Node source = graph.addNode(), sink = graph.addNode();
  lemon::SmartDigraph::ArcMap<std::int64_t> capacity(graph), cost(graph);
  const auto add = [&](auto from, auto to, std::int64_t most, std::int64_t price) {
    const lemon::SmartDigraph::Arc arc = graph.addArc(from, to);
    capacity[arc] = most;
    cost[arc] = price;
  };
  for (int i = 0; i < size; ++i) add(source, rows[static_cast<std::size_t>(i)], kept, 0);
  for (int j = 0; j < size; ++j) add(columns[static_cast<std::size_t>(j)], sink, kept, 0);
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j)
      add(rows[static_cast<std::size_t>(i)], columns[static_cast<std::size_t>(j)], 1,
          -costs[i * size + j]);
  lemon::NetworkSimplex<lemon::SmartDigraph, std::int64_t, std::int64_t> simplex(graph);
  simplex.upperMap(capacity).costMap(cost).stSupply(source, sink, std::int64_t{size} * kept);
  if (simplex.run() != decltype(simplex)::OPTIMAL)
    throw std::runtime_error("the network simplex found no optimum");
  return -simplex.totalCost<std::int64_t>();
}

}  // namespace numemu::testing
