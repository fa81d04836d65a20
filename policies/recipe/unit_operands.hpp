// The format in which a unit reads a role, and whether the unit supports it.
#pragma once
#include <cstdint>
#include <optional>

#include "emu/unit/unit.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Whether the unit takes the scales of blocks along K.
bool block_scaled(const unit::Unit&);

/// Whether the unit, which takes no float32, reads the codes of the role's blocks one product per
/// block of the depth, their float32 scales being applied to each (sliced_product.hpp).
bool reads_slices(const unit::Unit&, const RolePolicy&);

/// The format of the operand: that of the role's elements (scales of tensors, channels and rows are
/// applied after the unit), float32 for a role that stays float32, for a codebook, and for a block
/// format on a unit without block scales: float32, y of quantize, unless it reads slices.
const Format& operand_format(const unit::Unit&, const std::optional<RolePolicy>&);

/// The unit's own format of an operand where it does not take the role's, but has all its values:
/// codes are re-encoded, exactly (int4 on a unit of int8). Null where it takes the role's format,
/// or cannot; of blocks, and beyond 16 bits.
const Format* wider_operand(const unit::Unit&, const std::optional<RolePolicy>&, net::Side);

/// Throws Error naming the unit and the format unless the unit takes the role as that operand: its
/// format, or a wider one; on a block-scaled unit blocks of its size with its scale format; on
/// another one a block format only where it takes float32.
void require_operand(const unit::Unit&, const std::optional<RolePolicy>&, net::Side);
/// Whether the mask leaves at most the unit's N of every M along the depth of that product; a mask
/// with another rule for tails than `error` does not.
bool serves_sparsity(const unit::Unit&, const MaskPolicy&, net::Role, net::GemmKind);
/// The operand of the product that a sparse unit takes compressed: A where both serve. Nothing for
/// a dense unit. Throws Error naming unit and roles where no mask serves it.
std::optional<net::Side> sparse_side(const LayerRecipe&, net::GemmKind);

/// Throws Error unless the unit of that product takes both operands. fprop: A is the
/// activation, B the weight; dgrad: the gradient and the weight; wgrad: the gradient and the
/// activation. On a sparse unit the masked operand is its A, whichever side of the product it is.
/// `float32_too` includes roles that stay float32; set it when the product runs.
void require_operands(const LayerRecipe&, net::GemmKind, bool float32_too);

}  // namespace numemu::policies
