// Fused units of at most 13 fraction bits and 8-bit operands by float16 multiplications
// (AVX512-FP16).
#pragma once
#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Computes the product, or returns false having written nothing: where the description or the
/// exponents that occur leave what half_form.cpp proves, and on a CPU without the instructions.
/// Throws Error as Unit::multiply does.
bool multiply_fused_half(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
