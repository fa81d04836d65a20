// Fused steps of a product with few outputs, such as a dot: a vector form would compute all its
// lanes for one of them.
#pragma once
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// One output at a time in 64-bit integers, from operands that are read as for the vector forms.
bool multiply_fused_few(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
