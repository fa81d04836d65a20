// Between a graph's parameters and a checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "emu/net/model/safetensors.hpp"
#include "emu/net/model/tuned_from.hpp"
#include "formats/error.hpp"
#include "formats/storage/safetensors_header.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

/// As an import requires it: constants that activations meet may be infinite, as masks are.
void require_finite(const NamedTensor& tensor, bool constant, const std::string& path) {
  for (std::size_t i = 0; i < tensor.value.data.size(); ++i) {
    const float v = tensor.value.data[i];
    if (std::isfinite(v) || (constant && std::isinf(v))) continue;
    throw Error(fmt::format("{}: tensor {}: element {}: expected a {}, found {}", path,
                            quote_name(tensor.name), i, constant ? "number" : "finite number", v));
  }
}

}  // namespace

void load_parameters(Graph& graph, const Checkpoint& checkpoint, const std::string& path) {
  std::map<std::string, const Tensor*> tensors;
  for (const NamedTensor& tensor : checkpoint.tensors) tensors[tensor.name] = &tensor.value;
  const std::vector<Parameter*> parameters = graph.parameters();
  std::vector<std::string> names;
  for (const Parameter* parameter : parameters) {
    names.push_back(parameter->name);
    const auto found = tensors.find(parameter->name);
    if (found == tensors.end()) {
      throw Error(fmt::format("{}: expected a tensor {} of the network {}, found none", path,
                              quote_name(parameter->name), graph.name));
    }
    if (found->second->shape != parameter->value.shape) {
      throw Error(fmt::format("{}: tensor {}: expected shape {} of the network {}, found {}", path,
                              quote_name(parameter->name), to_string(parameter->value.shape),
                              graph.name, to_string(found->second->shape)));
    }
  }
  std::set<std::string> constants;
  for (const Node& node : graph.nodes) {
    if (node.op->kind() != "constant") continue;
    for (const Parameter& parameter : node.op->parameters()) constants.insert(parameter.name);
  }
  for (const NamedTensor& tensor : checkpoint.tensors) {
    require_finite(tensor, constants.contains(name_in_graph(tensor.name)), path);
    if (is_tuned_from(tensor.name)) continue;
    if (std::find(names.begin(), names.end(), tensor.name) == names.end()) {
      throw Error(
          fmt::format("{}: tensor {}: expected a parameter of the network {}; did you mean '{}'?",
                      path, quote_name(tensor.name), graph.name, nearest_name(tensor.name, names)));
    }
  }
  // Only now: a checkpoint that does not fit leaves the graph as it was.
  for (Parameter* parameter : parameters) parameter->value = *tensors.at(parameter->name);
}

Checkpoint parameters_of(const Graph& graph) {
  Checkpoint checkpoint;
  for (const Parameter* parameter : graph.parameters())
    checkpoint.tensors.push_back({parameter->name, parameter->value});
  return checkpoint;
}

}  // namespace numemu::net
