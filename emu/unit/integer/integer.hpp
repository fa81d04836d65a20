// The fast kernels of integer cores, and of exact products whose operands are a few base-256
// digits.
#pragma once
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp); no integer is NaN.
inline constexpr std::string_view kIntegerFields[] = {
    "core",     "k",       "group", "accumulator.bits", "accumulator.integer_overflow",
    "nan_code", "products"};

/// A product on a unit whose core is `integer`, `xnor` or `table`, bit for bit what the reference
/// gives. False, with nothing written, where the unit or the operands are beyond these kernels.
/// Throws Error when a gather does not fit its operand.
bool multiply_integer(const UnitDescription&, const Gemm&);

/// The exact sum of the products and C, rounded once to float32 (C and D are float), for operands
/// of at most 8 bits. False, with nothing written, where this CPU has no AMX, where NaN or infinity
/// is present in A or B, where values span more bits than four digits, or where the sum needs more
/// than a double.
bool multiply_exact_digits(const Gemm&);

}  // namespace numemu::unit
