// Products of units with two levels of accumulation: each inner sum is a product of its own.
#pragma once
#include <optional>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// For units with outer.every. Cuts the operands along k, multiplies each slice by the fast path of
/// the unit without its outer register and adds the sums. Returns false, with nothing written, for
/// sparse units, stochastic registers, inner registers that no container holds, scales that
/// straddle two sums, and where the inner unit has no fast path. Memory: one slice of the operands
/// and one sum per output.
bool multiply_two_levels(const UnitDescription&, const Gemm&);

/// The unit of the inner sums: one level, results in a format that holds them. Empty where none
/// does.
std::optional<UnitDescription> inner_unit(const UnitDescription&);

}  // namespace numemu::unit
