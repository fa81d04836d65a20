#include "policies/recipe/unit_operands.hpp"

#include <fmt/format.h>

#include <utility>

#include "formats/convert.hpp"
#include "formats/error.hpp"

namespace numemu::policies {
namespace {

/// The roles of A and B.
std::pair<net::Role, net::Role> roles_of(net::GemmKind kind) {
  return {kind == net::GemmKind::fprop ? net::Role::activation : net::Role::gradient,
          kind == net::GemmKind::wgrad ? net::Role::activation : net::Role::weight};
}

bool takes(const unit::Unit& unit, const Format& format, net::Side side) {
  return side == net::Side::a ? unit.accepts_a(format) : unit.accepts_b(format);
}

void require_blocks(const unit::Unit& unit, const std::optional<RolePolicy>& policy) {
  const unit::Scaling& scaling = unit.description()->scaling;
  const auto wanted = [&](const std::string& found) {
    throw Error(
        fmt::format("unit {} takes blocks of {} elements with {} scales along the depth, not {}",
                    unit.row().name, scaling.block, scaling.format->name, found));
  };
  if (!policy) wanted("float32");
  if (policy->block == nullptr)
    wanted(fmt::format("{} with one scale per {}", policy->format->name,
                       policy->granularity == Granularity::tensor ? "tensor" : "channel or row"));
  const BlockFormat& block = *policy->block;
  const bool fits = block.scale->name == scaling.format->name && block.span == Span::block &&
                    block.size == scaling.block && block.affine == Affine::sym &&
                    block.element_exponent == 0;
  if (!fits) wanted(block.name);
  if (policy->granularity == Granularity::tile) wanted(block.name + " in tiles");
}

}  // namespace

bool block_scaled(const unit::Unit& unit) {
  const unit::UnitDescription* u = unit.description();
  return u != nullptr && u->scaling.block != 0;
}

bool reads_slices(const unit::Unit& unit, const RolePolicy& policy) {
  const BlockFormat* const block = policy.block;
  return block != nullptr && !block_scaled(unit) && block->span == Span::block &&
         block->affine == Affine::sym && !block->tensor_scale && block->element_exponent == 0 &&
         block->element->bits <= 8 && *block->scale == float32() &&
         policy.axis == BlockAxis::channel && unit.d_format() == &float32() &&
         !unit.accepts_a(float32()) && !unit.accepts_b(float32());
}

const Format& operand_format(const unit::Unit& unit, const std::optional<RolePolicy>& policy) {
  if (!policy) return float32();
  const bool whole = policy->block == nullptr && policy->format->kind != Kind::codebook;
  return whole || block_scaled(unit) || reads_slices(unit, *policy) ? *policy->format : float32();
}

const Format* wider_operand(const unit::Unit& unit, const std::optional<RolePolicy>& policy,
                            net::Side side) {
  constexpr int kMostBits = 16;
  const unit::UnitDescription* const u = unit.description();
  if (u == nullptr || block_scaled(unit) || !policy || policy->block != nullptr) return nullptr;
  const Format &narrow = operand_format(unit, policy), *wide = side == net::Side::a ? u->a : u->b;
  const auto of_numbers = [](const Format& f) {
    return (f.kind == Kind::integer || f.kind == Kind::floating) && f.bits <= kMostBits;
  };
  if (wide == nullptr || takes(unit, narrow, side) || !of_numbers(narrow) || !of_numbers(*wide))
    return nullptr;
  const bool specials = (wide->has_infinity() || !narrow.has_infinity()) &&
                        (wide->has_nan() || !narrow.has_nan()) &&
                        (wide->has_negative_zero() || !narrow.has_negative_zero());
  return specials && exact_in(narrow, *wide) ? wide : nullptr;
}

void require_operand(const unit::Unit& unit, const std::optional<RolePolicy>& policy,
                     net::Side side) {
  if (block_scaled(unit)) require_blocks(unit, policy);
  const Format& format = operand_format(unit, policy);
  if (takes(unit, format, side) || wider_operand(unit, policy, side) != nullptr) return;
  if (policy && policy->block != nullptr && !block_scaled(unit) && !reads_slices(unit, *policy)) {
    throw Error(fmt::format(
        "unit {} does not take blocks of {} (it takes {}): expected a unit with block scales or "
        "one that takes float32",
        unit.row().name, policy->block->name, unit.operand_rule()));
  }
  if (policy && policy->format->kind == Kind::codebook) {
    throw Error(fmt::format(
        "unit {} does not take codebooks (it takes {}): expected a unit that takes float32",
        unit.row().name, unit.operand_rule()));
  }
  throw Error(fmt::format("unit {} does not take operands of format {} (it takes {})",
                          unit.row().name, format.name, unit.operand_rule()));
}

bool serves_sparsity(const unit::Unit& unit, const MaskPolicy& mask, net::Role role,
                     net::GemmKind kind) {
  const unit::Sparsity& s = unit.description()->sparsity;
  const int n = mask.pattern.kept, m = mask.pattern.group;
  // Where M divides the axis no rule for tails is needed, and elsewhere none makes whole groups.
  if (mask.propagated || mask.remainder != Remainder::error ||
      mask.rule->span == MaskSpan::tensor || s.group % m != 0 || n * (s.group / m) > s.kept)
    return false;
  const bool tiles = mask.rule->span == MaskSpan::tile;
  switch (role) {
    case net::Role::weight:
      // Both layouts keep groups along the channels; only tiles keep them along the outputs, too.
      return kind == net::GemmKind::fprop ||
             (kind == net::GemmKind::dgrad && tiles && mask.layout == TileLayout::tile);
    case net::Role::activation:
      return kind == net::GemmKind::fprop;
    default:
      return kind == net::GemmKind::wgrad ||
             (kind == net::GemmKind::dgrad && mask.axis == MaskAxis::channel);
  }
}

std::optional<net::Side> sparse_side(const LayerRecipe& layer, net::GemmKind kind) {
  const unit::Unit& unit = layer.unit(kind);
  const unit::UnitDescription* u = unit.description();
  if (u == nullptr || u->sparsity.dense()) return std::nullopt;
  const auto serves = [&](net::Role role) {
    const std::optional<MaskPolicy>& mask = layer.mask(role, kind);
    return mask && serves_sparsity(unit, *mask, role, kind);
  };
  const auto [a, b] = roles_of(kind);
  if (serves(a)) return net::Side::a;
  if (serves(b)) return net::Side::b;
  throw Error(fmt::format(
      "unit {} multiplies {}:{} sparse operands: expected a mask that keeps at most {} of {} along "
      "the depth of {}, of the role {} or {}",
      unit.row().name, u->sparsity.kept, u->sparsity.group, u->sparsity.kept, u->sparsity.group,
      net::to_string(kind), net::to_string(a), net::to_string(b)));
}

void require_operands(const LayerRecipe& layer, net::GemmKind kind, bool float32_too) {
  const unit::Unit& unit = layer.unit(kind);
  const bool turned = sparse_side(layer, kind) == net::Side::b;
  const auto check = [&](net::Role role, net::Side side) {
    const std::optional<RolePolicy>& policy = layer.role(role, kind);
    if (policy || float32_too) require_operand(unit, policy, side);
  };
  const auto [a, b] = roles_of(kind);
  try {
    check(a, turned ? net::Side::b : net::Side::a);
    check(b, turned ? net::Side::a : net::Side::b);
  } catch (const Error& error) {
    if (!turned) throw;
    throw Error(fmt::format("{} (the masked {} is its A, the {} its B)", error.what(),
                            net::to_string(b), net::to_string(a)),
                error.kind());
  }
}

}  // namespace numemu::policies
