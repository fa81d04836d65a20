// Fast paths of units that are chains of float32 multiply-adds with x86's rules, and of what they
// share with other lane kernels.
#pragma once
#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Computes the product as ReferenceDot does. False, with nothing written, where it does not cover
/// the case. It covers chains into float32, rounded to nearest even: one chain, k ascending or odd
/// before even; or two over even and odd k from +0, added, and then C, once per instruction;
/// subnormals kept everywhere or flushed everywhere. And, where the processor has AVX512-FP16,
/// single chains into float16. Throws Error as Unit::multiply does.
bool multiply_lanes(const UnitDescription&, const Gemm&);

/// The part of it that needs AVX512-FP16.
bool multiply_halves(const UnitDescription&, const Gemm&);

/// C, D and the register are float32, rounded to nearest even unless `any_rounding`.
bool float32_register(const UnitDescription&, bool any_rounding = false);
/// Operands enter as they are and every product counts: no scales, no sparsity.
bool plain_operands(const UnitDescription&);

}  // namespace numemu::unit
