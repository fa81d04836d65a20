// Fused units in float64 rounded toward zero: one multiply-add aligns, cuts and adds a product.
#pragma once
#include "emu/unit/description.hpp"
#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Computes the product, or returns false having written nothing: when the description or a format
/// is not one that prepare_fused() covers, when the CPU has no fused multiply-add, when
/// 4 G + 2 > 2^(52 - F), or when a float16 D would see bits below 2^-66. It takes any F, G and
/// IEEE-like register of 1 to 23 fraction bits whose normal numbers are float32's, rounded to
/// nearest even or toward zero.
bool multiply_fused_double(const UnitDescription&, const Gemm&);

/// Whether that target multiplies and adds with one rounding.
bool has_double_form();

}  // namespace numemu::unit
