#include "policies/numerics/recipe_layer.hpp"

#include <cstring>
#include <utility>

#include "policies/numerics/quantized_tensor.hpp"

namespace numemu::policies {

namespace {

// Elements: below it there is little to gain, above it the copy takes more than 4 MiB.
constexpr std::int64_t kLeastSample = 256, kMost = std::int64_t{1} << 20;

}  // namespace

std::vector<float> ScaleMemo::ask(const RoleQuantizer& quantizer, const float* x, std::int64_t n,
                                  std::int64_t groups) {
  ++asked_;
  return choose_scales(quantizer, x, n, groups);
}

std::vector<float> ScaleMemo::scales(const RoleQuantizer& quantizer, const float* x, std::int64_t n,
                                     std::int64_t groups) {
  if (!quantizer.reads_elements() || n < kLeastSample || n > kMost)
    return ask(quantizer, x, n, groups);
  const RolePolicy& policy = quantizer.policy();
  Key key{policy.format, policy.rounding, policy.overflow, policy.scale, groups};
  const auto size = static_cast<std::size_t>(n);
  {
    const std::lock_guard lock(mutex_);
    // Bits, not numbers: NaN is unequal to itself.
    if (key == key_ && x_.size() == size && std::memcmp(x_.data(), x, size * sizeof(float)) == 0)
      return scales_;
  }
  std::vector<float> chosen = ask(quantizer, x, n, groups);
  const std::lock_guard lock(mutex_);
  key_ = std::move(key);
  x_.assign(x, x + n);
  scales_ = chosen;
  return chosen;
}

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

RecipeLayer::RecipeLayer(LayerRecipe layer, net::Role of_right)
    : recipe(std::move(layer)), right(of_right) {
  for (const RoleRow& row : role_table()) {
    for (const RoleRow::Part& part : row.parts)
      quantizers[part.part] = quantizer_of(recipe[part.part]);
  }
  second = quantizer_of(recipe.role(right, net::GemmKind::fprop));
}

net::Role RecipeLayer::operand(const net::Product& p, net::Side which) const {
  return reads_second(p, which) ? right : p.side(which).role;
}

const RoleQuantizer* RecipeLayer::quantizer(const net::Product& p, net::Side which) const {
  if (reads_second(p, which)) return pointer(second);
  return pointer(quantizers[operand_part(p.side(which).role, p.kind)]);
}

bool RecipeLayer::stochastic_unit(net::GemmKind kind) const {
  const unit::UnitDescription* u = recipe.unit(kind).description();
  return u != nullptr && (u->accumulator.rounding.stochastic() || u->c_rounding.stochastic() ||
                          u->input.rounding.stochastic());
}

}  // namespace numemu::policies
