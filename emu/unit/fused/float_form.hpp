// Fused units of few fraction bits by float32 multiply-adds rounded toward zero.
#pragma once
#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Computes the product, or returns false having written nothing: where the description is not a
/// fused step with 4 G + 2 <= 2^(23-F), where exponents or C leave the range that float_form.cpp
/// states, or on a CPU without fused multiply-add. Throws Error as Unit::multiply does.
bool multiply_fused_float(const UnitDescription&, const Gemm&);

// Fused units of at most 13 fraction bits and 8-bit operands by float16 multiplications
// (AVX512-FP16).

/// Computes the product, or returns false having written nothing: where the description or the
/// exponents that occur leave what float_form.cpp proves, and on a CPU without the instructions.
/// Throws Error as Unit::multiply does.
bool multiply_fused_half(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
