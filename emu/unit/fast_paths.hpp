// The list of fast paths; the first that covers a product computes it.
#pragma once
#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Computes the product as the reference would, bit for bit, or returns false with nothing written
/// because no fast path covers it. The product has been checked.
bool multiply_fast(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
