// Operands quantized whole, before the gather, and the scales to apply to the results.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/net/product.hpp"
#include "policies/numerics/operands/operand_scales.hpp"
#include "policies/numerics/operands/scale_groups.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/numerics/scale_memo.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::policies {

/// An operand quantized whole, before the gather: codes of the role's format, or float32 values (of
/// a block format, or where scales cannot be applied to the results).
struct PlainOperand {
  QuantizedTensor codes;
  QuantizedTensor as_read;  ///< the codes in the unit's own format; no format: as they are
  std::vector<float> values;
  bool dequantized = false;  ///< `values` is the operand
  FlagCounts flags;
};

/// How to quantize a side whole.
struct PlainPreparation {
  ScaleGroups groups = {};
  std::optional<TensorScale> fixed = std::nullopt;  ///< the one scale of the tensor, if it is known
  std::int64_t samples = 1;  ///< shares of the source that have a tensor scale of their own
  RandomPiece random = {};
  const Format* wide = nullptr;  ///< of codes that the unit reads in its own format
  ScaleMemo* memo = nullptr;     ///< of the operand, where other products read it too
};

/// Quantizes a side's source. Where the scales cannot wait for the results, the operand is the
/// dequantized numbers.
void prepare_plain(const RoleQuantizer&, const net::Product&, net::Side, const PlainPreparation&,
                   PlainOperand&);

/// What the unit reads, and the scales that remain to be applied. Throws Error naming the layer
/// where they cannot be.
net::SourceCodes codes_of(const RoleQuantizer&, const PlainOperand&);
OperandScales scales_of(const RoleQuantizer&, const net::Product&, net::Side, const ScaleGroups&,
                        const PlainOperand&);

}  // namespace numemu::policies
