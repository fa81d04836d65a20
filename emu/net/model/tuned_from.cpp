#include "emu/net/model/tuned_from.hpp"

#include <algorithm>

namespace numemu::net {
namespace {

constexpr std::string_view kPrefix = "tuned_from/";

}  // namespace

bool is_tuned_from(std::string_view tensor) { return tensor.starts_with(kPrefix); }

std::string name_in_graph(std::string_view tensor) {
  return std::string(is_tuned_from(tensor) ? tensor.substr(kPrefix.size()) : tensor);
}

void add_tuned_from(Checkpoint& checkpoint, const Graph& before) {
  for (const Parameter* parameter : before.parameters())
    checkpoint.tensors.push_back({std::string(kPrefix) + parameter->name, parameter->value});
}

bool has_tuned_from(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.tensors,
                             [](const NamedTensor& tensor) { return is_tuned_from(tensor.name); });
}

void load_tuned_from(Graph& graph, const Checkpoint& checkpoint, const std::string& path) {
  Checkpoint before;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    if (is_tuned_from(tensor.name))
      before.tensors.push_back({name_in_graph(tensor.name), tensor.value});
  }
  load_parameters(graph, before, path);
}

}  // namespace numemu::net
