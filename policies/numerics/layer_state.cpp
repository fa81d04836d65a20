#include "policies/numerics/layer_state.hpp"

#include <utility>

namespace numemu::policies {
namespace {

std::optional<RoleQuantizer> quantizer_of(const std::optional<RolePolicy>& policy) {
  if (!policy) return std::nullopt;
  return RoleQuantizer(*policy);
}

/// Whether the side is a right operand of fprop that is an activation. wgrad reads the left one on
/// its right.
bool reads_second(const net::Product& p, net::Side which) {
  return which == net::Side::b && p.kind != net::GemmKind::wgrad &&
         p.b.role == net::Role::activation;
}

const RoleQuantizer* pointer(const std::optional<RoleQuantizer>& q) { return q ? &*q : nullptr; }

}  // namespace

LayerQuantizers quantizers_of(const LayerRecipe& recipe) {
  LayerQuantizers quantizers;
  for (const RoleRow& row : role_table()) {
    for (const RoleRow::Part& part : row.parts)
      quantizers[part.part] = quantizer_of(recipe[part.part]);
  }
  return quantizers;
}

LayerState::LayerState(LayerRecipe layer, net::Role of_right)
    : recipe(std::move(layer)),
      right(of_right),
      quantizers(quantizers_of(recipe)),
      second(quantizer_of(recipe.role(right, net::GemmKind::fprop))) {}

net::Role LayerState::operand(const net::Product& p, net::Side which) const {
  return reads_second(p, which) ? right : p.side(which).role;
}

const RoleQuantizer* LayerState::quantizer(const net::Product& p, net::Side which) const {
  if (reads_second(p, which)) return pointer(second);
  return pointer(quantizers[operand_part(p.side(which).role, p.kind)]);
}

bool LayerState::stochastic_unit(net::GemmKind kind) const {
  const unit::UnitDescription* u = recipe.unit(kind).description();
  return u != nullptr && (u->accumulator.rounding.stochastic() || u->c_rounding.stochastic() ||
                          u->input.rounding.stochastic());
}

}  // namespace numemu::policies
