#include "policies/recipe/recipe_numerics.hpp"

#include <fmt/format.h>

#include "formats/error.hpp"
#include "policies/recipe/choices.hpp"

namespace numemu::policies {

NumericsStack::NumericsStack(const Recipe& recipe, const net::Graph& graph,
                             const std::string& where)
    : recipe_(recipe), roles_(recipe_, graph, where) {
  const std::vector<PolicySlot>& slots = policy_slots();
  std::vector<std::string> names;
  for (const net::Node& node : graph.nodes) names.push_back(node.name);
  // By slot, the layers of every policy that some layer chose.
  std::vector<std::map<const PolicyKind*, Binding>> chosen(slots.size());
  for (const std::string& name : names) {
    const std::vector<std::optional<PolicyChoice>> policies = recipe_.policies(name);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!policies[i]) continue;
      const Binding empty{.recipe = recipe_, .graph = graph, .where = where, .layers = {}};
      Binding& binding = chosen[i].try_emplace(policies[i]->kind, empty).first->second;
      binding.layers.emplace(name, policies[i]->options);
    }
  }
  for (std::size_t i = slots.size(); i-- > 0;) {
    // In the order of the table, not of addresses.
    for (const PolicyKind* kind : all_policies()) {
      const auto found = chosen[i].find(kind);
      if (found == chosen[i].end()) continue;
      found->second.where = fmt::format("{}: {}", where, slots[i].key);
      policies_.push_back(kind->bind(std::move(found->second), top()));
    }
  }
}

net::Numerics& NumericsStack::top() {
  if (policies_.empty()) return roles_;
  return *policies_.back();
}

}  // namespace numemu::policies
