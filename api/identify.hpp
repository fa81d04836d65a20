// The rule of an unknown unit, from its answers to questions that tell units apart: a device that
// answers, records of one, folders that GPUs recorded.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/question_device.hpp"
#include "api/units.hpp"
#include "emu/oracle/identify.hpp"
#include "emu/oracle/replay/record_answers.hpp"
#include "emu/oracle/summation_tree.hpp"

namespace numemu::api {

/// What the unknown unit takes, in the words of the command; empty and 0: not said.
struct PortsTold {
  std::string like = {};  ///< as open_unit() takes it; the other members go before it
  std::string a = {}, b = {}, c = {}, d = {};  ///< formats; of C and D also int2 to int32
  std::int64_t k = 0;                          ///< elements of B in a dot
  std::string scale = {};                      ///< format of block scales,
  std::int64_t block = 0;                      ///< and elements per scale
  std::string sparsity = {};                   ///< "2:4"
};

/// Its ports, and the descriptions beside the catalogue's that it may have.
struct UnknownUnit {
  oracle::Ports ports;
  std::vector<unit::UnitDescription> units = {};
};
/// Throws Error where the words leave a port open, or no unit can have such ports.
UnknownUnit unknown_unit(const PortsTold&);

/// The finding, and what a report says about where it comes from.
struct Identified {
  oracle::Finding finding;
  oracle::Ports ports;
  std::size_t asked = 0;  ///< questions, or records
  bool order_asked = false;
  std::optional<oracle::SummationNode> tree = {};  ///< the order of the sum, where it is one
  const char* place = nullptr;  ///< of records: "line" or "record"; nullptr: a device answered
  std::vector<std::int64_t> places = {};  ///< of each record
  std::size_t ignored = 0;                ///< records with unknown digits, or beyond 2^20

  bool records() const { return place != nullptr; }
  bool found() const { return finding.fits && finding.decided; }
};

/// Of the finding's rule, with a name that no unit of the catalogue has, so that open_unit() takes
/// the file. For unit::write_description().
unit::UnitDescription own_description(const Identified&);

/// Asks a function. `order`: the order of the sum, too, which is asked anyway where no rule fits.
Identified identify(const UnknownUnit&, const oracle::Device&, bool order,
                    const oracle::IdentifyOptions&);
/// Asks by text, one line a question and a line for its answer.
Identified identify(const UnknownUnit&, QuestionDevice&, bool order,
                    const oracle::IdentifyOptions&);
/// From the records of a file in any form that RecordFile reads. Throws Error naming file and line.
Identified identify_records(const std::string& in, const PortsTold&, oracle::IdentifyOptions);

/// Calls `found` for each instruction of a folder that a GPU recorded whose kind or name holds
/// `instr`; an instruction takes seconds. True where every one fits a rule. Throws Error naming
/// file and line.
bool identify_folder(
    const std::string& folder, const std::string& instr, const oracle::IdentifyOptions&,
    const std::function<void(const oracle::RecordedUnit&, const oracle::Finding&)>& found);

}  // namespace numemu::api
