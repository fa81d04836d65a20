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

RecipeLayer::RecipeLayer(LayerRecipe layer, net::Role of_right)
    : recipe(std::move(layer)),
      right(of_right),
      weight(quantizer_of(recipe.weight)),
      activation(quantizer_of(recipe.activation)),
      gradient_dgrad(quantizer_of(recipe.gradient_dgrad)),
      gradient_wgrad(quantizer_of(recipe.gradient_wgrad)),
      vector(quantizer_of(recipe.vector)),
      output(quantizer_of(recipe.output)),
      saved(quantizer_of(recipe.saved)),
      exchange(quantizer_of(recipe.exchange)),
      embedding(quantizer_of(recipe.embedding)),
      state(quantizer_of(recipe.state)),
      second_state(quantizer_of(recipe.second_state)),
      second(quantizer_of(recipe.role(right, net::GemmKind::fprop))) {}

net::Role RecipeLayer::operand(const net::Product& p, const net::ProductSide& side) const {
  // wgrad reads the left operand of the forward product.
  const bool second_read = &side == &p.b && p.kind != net::GemmKind::wgrad;
  return side.role == net::Role::activation && second_read ? right : side.role;
}

const RoleQuantizer* RecipeLayer::quantizer(const net::Product& p,
                                            const net::ProductSide& side) const {
  if (side.role == net::Role::weight) return pointer(weight);
  if (side.role == net::Role::gradient)
    return pointer(p.kind == net::GemmKind::dgrad ? gradient_dgrad : gradient_wgrad);
  return &side == &p.b && p.kind != net::GemmKind::wgrad ? pointer(second) : pointer(activation);
}

const RoleQuantizer* RecipeLayer::state_quantizer(std::string_view name) const {
  return pointer(&recipe.state_of(name) == &recipe.state ? state : second_state);
}

bool RecipeLayer::stochastic_unit(net::GemmKind kind) const {
  const unit::UnitDescription* u = recipe.unit(kind).description();
  return u != nullptr && (u->accumulator.rounding.stochastic() || u->c_rounding.stochastic() ||
                          u->input.rounding.stochastic());
}

}  // namespace numemu::policies
