// Exact sums rounded once, fast wherever a proof covers host arithmetic.
#pragma once
#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Covers the exact core over the whole depth with a float32 register, without scales. False where
/// it does not apply.
bool multiply_exact(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
