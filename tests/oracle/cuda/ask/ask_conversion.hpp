// Runs one conversion on all its inputs on a machine and writes the results to a folder.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emu/oracle/recording/conversion.hpp"
#include "tests/oracle/cuda/ask/ask.hpp"

namespace numemu::oracle::recording {

/// All lanes gave the same code.
bool lanes_agree(const Conversion&, std::uint32_t answer);

/// Which inputs are recorded: places in conversion_inputs, ascending, specials first; at most
/// kRecordedBytes of records of record_bytes.
std::vector<std::size_t> choose_records(const Conversion&, const std::vector<std::uint32_t>& in);
std::vector<std::uint8_t> conversion_records(const Conversion&,
                                             const std::vector<std::size_t>& chosen,
                                             const std::vector<std::uint32_t>& in,
                                             const std::vector<std::uint32_t>& answers);

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
