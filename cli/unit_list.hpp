// Lists of units that fit 80 columns: the catalogue by instruction, or the units of a pattern.
#pragma once
#include <string>
#include <vector>

#include "emu/unit/unit.hpp"

namespace numemu::cli {

/// One line per chip and instruction with the number of its units, letters of their evidence and
/// codes of their arithmetic; the neutral units first, a legend below.
std::string instruction_list();

/// One line per unit with the letter of its evidence and the code of its arithmetic, and the
/// modifiers that the names may take.
std::string unit_list(const std::vector<const unit::Unit*>& units);

}  // namespace numemu::cli
