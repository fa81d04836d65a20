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

/// A row of the tables of rules: what changes on the way from the inputs of records to their
/// results. What is empty does not change. Thread-safe.
struct Rule {
  /// Of records, which begin as those of the sample.
  using Change = std::function<void(Records&, const Sample&)>;

  std::string family;  ///< "order", "alignment", "double rounding", "flush", ...
  std::string name;    ///< "alignment.fraction_bits 24 in place of 25"
  Change inputs = {};  ///< what the machine reads
  /// Computes results and flags, as evaluate() does; empty: by the subject.
  std::function<void(Records&)> compute = {};
  Change results = {};  ///< what becomes of results and flags
  /// Of a unit whose description alone is another: that unit.
  std::shared_ptr<const unit::Unit> unit = {};
  /// What `compute` reads where `inputs` turns records into those of other fields; empty: the same.
  /// Results stand in the same place.
  Layout layout = {};
  /// Why no input tells it from the subject; "": some may.
  std::string_view equal = {};
};

/// Records, which begin as those of the sample, with results and flags by the rule, and by what
/// `then` changes on top of it. The sample may be empty where no rule changes inputs or results.
Records predict(const Subject&, const Rule&, Records, const Sample&, const Rule& then = {});

/// Every rule that is tried where results of the subject differ.
std::vector<Rule> rules_of(const Subject&);
/// Every rule of flags alone, which is tried on top of a rule of results.
std::vector<Rule> flag_rules(const Subject&);

/// The parts of rules_of().

/// Of operations: other roundings, overflows, flushes, lost sticky bits, double roundings.
std::vector<Rule> operation_rules(const Subject&);
/// Patches of a unit's description, and the catalogue's other units with the same records.
std::vector<Rule> unit_rules(const Subject&);
/// Operands, scales and C decoded as another format, a register with a bit fewer.
std::vector<Rule> format_rules(const Subject&);
/// Operands, scales and metadata in another place, lost, negated, or with their bits in another
/// order.
std::vector<Rule> operand_rules(const Subject&);
/// What is left of the record before.
std::vector<Rule> stream_rules(const Subject&);
/// Results changed after all: the sign of zero lost, saturated one early, bits in another order.
std::vector<Rule> result_rules(const Subject&);

// Codes as hardware and kernels change them by mistake.

/// The number of the other sign; a code without a sign as it is.
std::uint64_t negated(const Field&, std::uint64_t code);
/// The code with its sign bit 0.
std::uint64_t without_sign(const Field&, std::uint64_t code);
/// +0 in place of -0.
std::uint64_t plus_zero(const Field&, std::uint64_t code);

/// An order of the bits of a code that is not their own.
struct BitOrder {
  const char* name;  ///< "nibbles of the codes of {} swapped"
  std::uint64_t (*change)(std::uint64_t code, int bits);
};
/// Those that codes of so many bits can have.
std::vector<BitOrder> bit_orders(int bits);

}  // namespace numemu::oracle
