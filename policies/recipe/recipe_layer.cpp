#include "policies/recipe/recipe_layer.hpp"

#include <utility>

namespace numemu::policies {
namespace {

std::optional<RoleQuantizer> quantizer_of(const std::optional<RolePolicy>& policy) {
  if (!policy) return std::nullopt;
  return RoleQuantizer(*policy);
}

const RoleQuantizer* pointer(const std::optional<RoleQuantizer>& q) { return q ? &*q : nullptr; }

}  // namespace

RecipeLayer::RecipeLayer(LayerRecipe layer)
    : recipe(std::move(layer)),
      weight(quantizer_of(recipe.weight)),
      activation(quantizer_of(recipe.activation)),
      gradient_dgrad(quantizer_of(recipe.gradient_dgrad)),
      gradient_wgrad(quantizer_of(recipe.gradient_wgrad)),
      vector(quantizer_of(recipe.vector)),
      output(quantizer_of(recipe.output)),
      saved(quantizer_of(recipe.saved)),
      state(quantizer_of(recipe.state)),
      exchange(quantizer_of(recipe.exchange)) {}

const RoleQuantizer* RecipeLayer::quantizer(net::Role role, net::GemmKind kind) const {
  if (role == net::Role::weight) return pointer(weight);
  if (role == net::Role::activation) return pointer(activation);
  return pointer(kind == net::GemmKind::dgrad ? gradient_dgrad : gradient_wgrad);
}

bool RecipeLayer::stochastic_unit(net::GemmKind kind) const {
  const unit::UnitDescription* u = recipe.unit(kind).description();
  return u != nullptr && (u->accumulator.rounding.stochastic() || u->c_rounding.stochastic() ||
                          u->input.rounding.stochastic());
}

}  // namespace numemu::policies
