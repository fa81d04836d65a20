#include "policies/recipe/bound_recipe.hpp"

#include <fmt/format.h>

#include "formats/error.hpp"
#include "policies/recipe/choices.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

BoundRecipe::BoundRecipe(const Recipe& recipe, const net::Graph& graph, const std::string& where) {
  const auto bound = std::make_shared<Bound>();
  bound->recipe = recipe;
  bound->graph = &graph;
  bound->where = where;
  const auto add = [&](const std::string& name) -> const LayerRecipe& {
    const auto [found, added] = bound->layers.try_emplace(name);
    if (added) found->second = {recipe.layer(name), recipe.policies(name)};
    return found->second.roles;
  };
  for (net::GemmLayer& gemm : net::gemm_layers(graph)) {
    const LayerRecipe& roles = add(gemm.name);
    bound->products.push_back({std::move(gemm), roles});
  }
  for (const net::Node& node : graph.nodes) add(node.name);
  for (const net::GraphInput& input : graph.inputs) add(input.name);
  bound_ = bound;
}

const BoundRecipe::Layer& BoundRecipe::at(std::string_view name) const {
  const auto found = bound_->layers.find(name);
  if (found == bound_->layers.end())
    throw Error(fmt::format("recipe: the network has no layer '{}'", name));
  return found->second;
}

std::vector<std::string> BoundRecipe::names() const {
  std::vector<std::string> names;
  for (const auto& [name, layer] : bound_->layers) names.push_back(name);
  return names;
}

const PolicyChoice* BoundRecipe::chosen(std::string_view key, std::string_view layer) const {
  const std::optional<PolicyChoice>& choice = policies(layer).at(slot_of(key));
  return choice ? &*choice : nullptr;
}

bool BoundRecipe::chooses_for_inference(std::string_view key, std::string_view layer) const {
  const PolicyChoice* const choice = chosen(key, layer);
  return choice != nullptr && acts_in_inference(policy_slots()[slot_of(key)], *choice);
}

bool has_static_scale(const CalibrationPolicy& calibration, const RolePolicy& policy) {
  return policy.granularity == Granularity::tensor && policy.block == nullptr &&
         calibration.rule != CalibrationPolicy::Rule::dynamic;
}

bool is_calibrated(const CalibrationPolicy& calibration, const RolePolicy& policy) {
  return has_static_scale(calibration, policy) && (policy.scale != "none" || policy.zero_point) &&
         !policy.fixed;
}

std::vector<CalibratedOperand> calibrated_operands(const BoundRecipe& recipe,
                                                   const CalibrationPolicy& calibration) {
  std::vector<CalibratedOperand> operands;
  for (const auto& [gemm, roles] : recipe.products()) {
    for (const net::Role role : {net::Role::activation, gemm.right}) {
      if (role == net::Role::weight) continue;
      const std::optional<RolePolicy>& policy = roles.role(role, net::GemmKind::fprop);
      if (policy && is_calibrated(calibration, *policy)) operands.push_back({gemm, *policy});
    }
  }
  return operands;
}

}  // namespace numemu::policies
