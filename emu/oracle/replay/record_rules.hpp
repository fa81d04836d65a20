// The rule of a recorded instruction and its rivals: patches of the unit's description by question,
// which is the family of each.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/rule.hpp"

namespace numemu::oracle {

/// The rule that a description gives for an instruction, computed by the reference. Throws Error
/// where the unit reads other containers.
Rule rule_of(const unit::UnitDescription&, const recording::Instruction&);
/// The catalogue's rule on a chip; nothing where it has no unit.
std::optional<Rule> rule_of(const std::string& chip, const recording::Instruction&);

/// Every rule that differs from `rule` in one question, computed by fast paths: patches of its
/// description, and edits of operands and results that leave it as it is.
std::vector<Rule> rivals_of(const Rule& rule, const recording::Instruction&);
/// Those of a rule of the catalogue, with the reasons why some are equal to it.
std::vector<Rule> rivals_of_catalogue(const Rule& rule, const recording::Instruction&);

/// D of every dot of the tiles by the rule, in containers.
std::vector<std::uint8_t> results_of(const Rule&, const recording::Batch&);

}  // namespace numemu::oracle
