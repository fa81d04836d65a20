// A unit made from its description: checks every product, then the first fast path that covers it.
#pragma once
#include <memory>

#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// `row` needs alias, grade, source and modifiers only; the rest is derived from the description.
std::unique_ptr<Unit> described_unit(UnitDescription, UnitRow row);

/// Throws Error naming the unit and what was expected: sizes, operand formats, scales, metadata.
void check_product(const Unit&, const Gemm&);

/// By the reference, output by output, over threads.
void multiply_by_reference(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
