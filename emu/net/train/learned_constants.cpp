#include "emu/net/train/learned_constants.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "emu/net/ops/views.hpp"
#include "emu/net/tied.hpp"

namespace numemu::net {
namespace {

struct OfFile {
  std::size_t node;
  const ConstantOrigin* origin;
};

/// Constants that have one.
std::vector<OfFile> origins_of(const Graph& graph) {
  std::vector<OfFile> out;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto* const constant = dynamic_cast<const Constant*>(graph.nodes[i].op.get());
    if (constant != nullptr && !constant->origin().tensor.empty())
      out.push_back({i, &constant->origin()});
  }
  return out;
}

bool has_one_value(const Tensor& value) {
  return std::ranges::adjacent_find(value.data, std::not_equal_to<>()) == value.data.end();
}

/// Whether training it would part it from what is one tensor with it, or tie what is not.
bool parts_or_ties(const Graph& graph, const std::vector<OfFile>& origins, const OfFile& own) {
  const auto same = [&](const OfFile& other) {
    return !other.origin->computed && other.origin->tensor == own.origin->tensor;
  };
  if (std::ranges::count_if(origins, same) > 1) return true;
  const Parameter& parameter = std::as_const(*graph.nodes[own.node].op).parameters()[0];
  if (has_one_value(parameter.value)) {
    std::int64_t reads = 0;
    for (const Node& node : graph.nodes)
      reads += std::ranges::count(node.inputs, graph.value_of(own.node));
    return reads > 1;
  }
  return std::ranges::any_of(graph.parameters(), [&](const Parameter* other) {
    return other != &parameter && (other->trained || other->is_tied()) &&
           other->value.size() == parameter.value.size() &&
           print_of(other->value) == print_of(parameter.value);
  });
}

}  // namespace

void train_learned_constants(Graph& graph) {
  const std::vector<OfFile> origins = origins_of(graph);
  std::vector<std::pair<Parameter*, bool>> chosen;
  for (const OfFile& own : origins) {
    if (own.origin->role == ConstantOrigin::Role::unknown) continue;
    Parameter& parameter = graph.nodes[own.node].op->parameters()[0];
    const bool finite =
        std::ranges::all_of(parameter.value.data, [](float v) { return std::isfinite(v); });
    if (finite && !parts_or_ties(graph, origins, own))
      chosen.emplace_back(&parameter, own.origin->role == ConstantOrigin::Role::vector);
  }
  for (const auto& [parameter, vector] : chosen) {
    parameter->trained = true;
    parameter->vector = vector;
  }
}

UntrainedTensors untrained_tensors(const Graph& graph) {
  UntrainedTensors out;
  std::set<std::string_view> seen;
  for (const OfFile& own : origins_of(graph)) {
    const Parameter& parameter = std::as_const(*graph.nodes[own.node].op).parameters()[0];
    if (parameter.trained || parameter.value.size() < 2 || !seen.insert(own.origin->tensor).second)
      continue;
    out.names.push_back(own.origin->tensor);
    out.elements += parameter.value.size();
  }
  out.of = out.elements + graph.parameter_count();
  return out;
}

}  // namespace numemu::net
