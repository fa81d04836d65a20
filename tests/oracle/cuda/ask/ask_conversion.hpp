// Runs one conversion on all its inputs on a machine and writes the results to a folder.
#pragma once
#include <functional>
#include <string>

#include "emu/oracle/recording/conversion.hpp"
#include "tests/oracle/cuda/ask/ask.hpp"

namespace numemu::oracle::recording {

/// The packed answers of the conversion, one per input.
using Converter =
    std::function<std::vector<std::uint32_t>(const Conversion&, const std::vector<std::uint32_t>&)>;

/// Writes FOLDER/conversions.tsv (file unit instr from to record_bytes count inputs seed hash lanes
/// source) and FOLDER/conversions/*.bin: a record is the input, then the output. `hash` is FNV-1a
/// over all answers, `lanes` the number of inputs for which the lanes of a packed conversion
/// disagree. Returns the number of inputs.
std::int64_t ask_conversion(const Converter&, const Conversion&, const AskOptions&,
                            const std::string& folder);

}  // namespace numemu::oracle::recording
