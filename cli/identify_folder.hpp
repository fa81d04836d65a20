// `numemu identify --in FOLDER`: the units that recorded answers of a GPU fit.
#pragma once
#include <string>

#include "emu/oracle/identify.hpp"

namespace numemu::cli {

/// Prints a paragraph for each instruction whose kind or name holds `instr`, or JSON. Returns the
/// exit code: 0 where every instruction fits a unit or a description. Throws Error naming file and
/// line.
int identify_folder(const std::string& folder, const std::string& instr,
                    const oracle::IdentifyOptions&, bool json);

}  // namespace numemu::cli
