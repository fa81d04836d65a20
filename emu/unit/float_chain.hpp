// Plain chains of float32 or float64 multiply-adds, k ascending from C.
#pragma once
#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Covers the chain core with a float32 or float64 register, every multiply-add rounded to nearest even,
/// subnormals kept and one NaN. False where it does not apply.
bool multiply_float_chain(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
