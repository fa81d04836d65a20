// The questions that rivals answer otherwise, and why no input tells some of them apart.
#pragma once
#include <string_view>

#include "emu/oracle/recording/instruction.hpp"
#include "emu/oracle/rule.hpp"

namespace numemu::oracle {

/// Whether products are floats within 2^-126 and 2^127.
bool sums_floats(const recording::Instruction&);

/// "no product reaches 2^128"; "" where some input may tell. `rule` is the catalogue's.
std::string_view why_equal(const Rule& rule, const Rule& rival, const recording::Instruction&);

/// The question of a patch of a description; "": none that probes ask, or too far from the unit's
/// own value.
std::string_view question_of(const unit::UnitDescription& own, const unit::UnitDescription& other,
                             const recording::Instruction&);

}  // namespace numemu::oracle
