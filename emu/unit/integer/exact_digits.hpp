// Exact products whose operands are a few base-256 digits, by integer tiles.
#pragma once
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The exact sum of the products and C, rounded once to float32 (C and D are float), for operands
/// of at most 8 bits. False, with nothing written, where this CPU has no AMX, where NaN or infinity
/// is present in A or B, where values span more bits than four digits, or where the sum needs more
/// than a double.
bool multiply_exact_digits(const Gemm&);

}  // namespace numemu::unit
