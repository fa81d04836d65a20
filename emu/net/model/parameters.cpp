// Between a graph's parameters and a checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "emu/net/model/safetensors.hpp"
#include "emu/net/model/tuned_from.hpp"
#include "formats/error.hpp"
#include "formats/storage/safetensors_header.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {

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
  for (const NamedTensor& tensor : checkpoint.tensors) {
    for (std::size_t i = 0; i < tensor.value.data.size(); ++i) {
      if (!std::isfinite(tensor.value.data[i])) {
        throw Error(fmt::format("{}: tensor {}: element {}: expected a finite number, found {}",
                                path, quote_name(tensor.name), i, tensor.value.data[i]));
      }
    }
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
