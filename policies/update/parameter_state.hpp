// State of update rules: float32 numbers per parameter, checked when a run continues.
#pragma once
#include <fmt/format.h>

#include <map>
#include <string>

#include "formats/error.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {

/// The tensors of the state under `prefix`: size_of(options, value) numbers, 0 for none, of every
/// trained parameter whose layer chose the policy, or none at all (a run before its first update).
/// Throws Error naming one that is missing, has another size, or belongs to no such parameter.
template <class Options, class SizeOf>
StateTensors load_parameters(const std::string& prefix, const Binding& binding,
                             const net::NamedState& state, const SizeOf& size_of) {
  StateTensors tensors;
  load_tensors(prefix, state, tensors);
  if (tensors.empty()) return tensors;
  std::map<std::string, std::size_t, std::less<>> expected;
  for (const net::Parameter* parameter : binding.recipe.graph().parameters()) {
    const Options* const options = binding.of<Options>(parameter->name);
    if (options == nullptr || !parameter->trained) continue;
    if (const std::size_t size = size_of(*options, parameter->value); size > 0)
      expected[parameter->name] = size;
  }
  const auto refuse = [&](const std::string& name, std::size_t wanted, const std::string& found) {
    throw Error(fmt::format("state {}/{}: expected {} float32 numbers, found {}", prefix, name,
                            wanted, found));
  };
  for (const auto& [name, size] : expected) {
    if (!tensors.contains(name)) refuse(name, size, "none");
  }
  for (const auto& [name, values] : tensors) {
    const auto found = expected.find(name);
    const std::size_t wanted = found == expected.end() ? 0 : found->second;
    if (values.size() != wanted) refuse(name, wanted, std::to_string(values.size()));
  }
  return tensors;
}

}  // namespace numemu::policies
