// Operands quantized whole, before the gather, and the scales to apply to the results.
#pragma once
#include "policies/recipe/operand_side.hpp"
#include "policies/recipe/recipe_layer.hpp"

namespace numemu::policies {

/// What operands without a quantizer are read as.
const Format& float32();

/// Quantizes a side's source. `fixed`: the one scale of the tensor, null for the scale of its own
/// values; `samples`: shares of the source that have a tensor scale of their own.
void prepare_plain(const RoleQuantizer&, const net::ProductSide&, const float* fixed,
                   std::int64_t samples, const RandomPiece&, PlainOperand&);

/// What the unit reads, and the scales that remain to be applied. Throws Error naming the layer
/// where they cannot be.
net::SourceCodes codes_of(const RoleQuantizer&, const PlainOperand&);
OperandScales scales_of(const RoleQuantizer&, const net::Product&, const net::ProductSide&,
                        const PlainOperand&);

}  // namespace numemu::policies
