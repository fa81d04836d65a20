// Effective stored bits of a network under a recipe.
#include "policies/recipe/bits.hpp"

#include "policies/scale_rule.hpp"

namespace numemu::policies {
namespace {

constexpr double kFloat32Bits = 32;
constexpr double kScaleBits = 32;

/// Stored bits of `elements` elements cut into `channels` under a role's policy.
double stored_bits(const std::optional<RolePolicy>& policy, std::int64_t elements,
                   std::int64_t channels) {
  if (!policy) return kFloat32Bits * elements;
  const std::int64_t groups = policy->granularity == Granularity::channel ? channels : 1;
  const std::int64_t scales = find_scale_rule(policy->scale).stores_scale ? groups : 0;
  return static_cast<double>(policy->format->bits) * elements + kScaleBits * scales;
}

}  // namespace

EffectiveBits effective_bits(const Recipe& recipe, const net::Graph& graph,
                             const FloatReference& reference) {
  double weight_bits = 0, weights = 0, activation_bits = 0, activations = 0;
  for (const net::Node& node : graph.nodes) {
    const auto input = reference.inputs.find(node.name);
    const bool multiplies = input != reference.inputs.end();
    const LayerRecipe layer = multiplies ? recipe.layer(node.name) : LayerRecipe{};
    for (const net::Parameter& parameter : static_cast<const net::Op&>(*node.op).parameters()) {
      const bool weight = multiplies && parameter.name.ends_with(".weight");
      weight_bits += stored_bits(weight ? layer.weight : std::nullopt, parameter.value.size(),
                                 parameter.value.dim(0));
      weights += parameter.value.size();
    }
    if (multiplies) {
      const std::int64_t per_image = input->second.size() / input->second.dim(0);
      activation_bits += stored_bits(layer.activation, per_image, 1);
      activations += per_image;
    }
  }
  return {weights > 0 ? weight_bits / weights : kFloat32Bits,
          activations > 0 ? activation_bits / activations : kFloat32Bits};
}

}  // namespace numemu::policies
