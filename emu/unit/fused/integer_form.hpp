// Fused units in 32-bit integers: products scaled to units of the last kept bit, converted, added.
#pragma once
#include "emu/unit/description.hpp"
#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Computes the product, or returns false having written nothing: when the description or a format
/// is not one that prepare_fused() covers, C joins at the end, operands are scaled, a step's sum
/// could leave 32 bits, a product or its last bit float32, or a sum the register's range (float16
/// registers may overflow).
bool multiply_fused_integer(const UnitDescription&, const Gemm&);

/// Whether that target has the vectors it needs.
bool has_integer_form();

}  // namespace numemu::unit
