// The rule of a recorded instruction and its rivals: patches of the unit's description by question.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/replay/record_edits.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::oracle {

struct RecordRule {
  std::string question;  ///< as in the table of probes; "": the unit's own rule
  std::string name;      ///< the unit, or what a rival does in its place
  std::shared_ptr<const unit::Unit> unit;
  OperandEdit operands = nullptr;  ///< null: as recorded
  ResultEdit results = nullptr;    ///< null: as the unit gives them
  bool of_catalogue = false;
  /// Of a rival: why no input of the instruction's types tells it from the rule; "": some may.
  std::string_view equal = {};
};

/// The rule that a description gives for an instruction.
RecordRule rule_of(const unit::UnitDescription&, const recording::Instruction&);
/// The catalogue's rule on a chip; nothing where it has no unit.
std::optional<RecordRule> rule_of(const std::string& chip, const recording::Instruction&);

/// Every rule that differs from `rule` in one question: patches of its description, and edits of
/// operands and results that leave it as it is.
std::vector<RecordRule> rivals_of(const RecordRule& rule, const recording::Instruction&);

/// D as the rule writes what its unit computed.
std::vector<std::uint8_t> written(const RecordRule&, const recording::Batch&,
                                  std::vector<std::uint8_t> d);
/// D of every dot in the containers of batch.d; operands are edited in single dots alone.
std::vector<std::uint8_t> results_of(const RecordRule&, const recording::Batch&);

}  // namespace numemu::oracle
