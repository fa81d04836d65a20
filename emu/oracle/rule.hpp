// Rules that a machine may follow in place of the subject's: what explains mismatches.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"

namespace numemu::oracle {

struct Rule {
  std::string family;  ///< "order", "alignment", "double rounding", "flush", ...
  std::string name;    ///< "alignment.fraction_bits 24 in place of 25"
  /// Writes the results of records of the subject, as evaluate() does, by this rule. Thread-safe.
  std::function<void(Records&)> evaluate;
  /// Of a unit whose description alone is another: that unit.
  std::shared_ptr<const unit::Unit> unit = {};
};

/// Every rule that is tried where results of the subject differ: flags never raised, rounding,
/// saturation, flushes, lost sticky bits and double roundings of an operation; patches of a unit's
/// description and the catalogue's other units with the same records.
std::vector<Rule> rules_of(const Subject&);

/// The parts of rules_of().
std::vector<Rule> operation_rules(const Subject&);
std::vector<Rule> unit_rules(const Subject&);
/// Operands in another place: elements of A or B in reverse order, A or C not used as they should.
std::vector<Rule> operand_rules(const Subject&);

}  // namespace numemu::oracle
