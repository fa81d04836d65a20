#include "policies/numerics/recipe_layer.hpp"

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
    : recipe(std::move(layer)), right(of_right) {
  for (const RoleRow& row : role_table()) {
    for (const RoleRow::Part& part : row.parts)
      quantizers[part.part] = quantizer_of(recipe[part.part]);
  }
  second = quantizer_of(recipe.role(right, net::GemmKind::fprop));
}

net::Role RecipeLayer::operand(const net::Product& p, const net::ProductSide& side) const {
  // wgrad reads the left operand of the forward product.
  const bool second_read = &side == &p.b && p.kind != net::GemmKind::wgrad;
  return side.role == net::Role::activation && second_read ? right : side.role;
}

const RoleQuantizer* RecipeLayer::quantizer(const net::Product& p,
                                            const net::ProductSide& side) const {
  const bool second_read = &side == &p.b && p.kind != net::GemmKind::wgrad;
  if (side.role == net::Role::activation && second_read) return pointer(second);
  return pointer(quantizers[operand_part(side.role, p.kind)]);
}

bool RecipeLayer::stochastic_unit(net::GemmKind kind) const {
  const unit::UnitDescription* u = recipe.unit(kind).description();
  return u != nullptr && (u->accumulator.rounding.stochastic() || u->c_rounding.stochastic() ||
                          u->input.rounding.stochastic());
}

}  // namespace numemu::policies
