// Fused units of few fraction bits by float32 multiply-adds rounded toward zero.
#pragma once
#include "emu/unit/description.hpp"
#include "emu/unit/fused/float_form_tile.hpp"
#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Computes the product, or returns false having written nothing: where the description is not a
/// fused step with 4 G + 2 <= 2^(23-F), where exponents or C leave the range that float_form.cpp
/// states, or on a CPU without fused multiply-add. Throws Error as Unit::multiply does.
bool multiply_fused_float(const UnitDescription&, const Gemm&);

/// The parts of it, for the half form: whether it covers the rule; and the operands; the whole
/// product as one tile; that tile cut for threads and run.
bool float_form_covers(const FusedRule&);
bool float_form_takes(const FusedOperands&, const Gemm&);
FloatFormTile float_form_problem(const Gemm&, const FusedOperands&);
void run_float_form(FloatFormTile whole);

}  // namespace numemu::unit
