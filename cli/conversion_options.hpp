// The options that encode, quantize and dequantize share, and what they print alike.
#pragma once
#include <string>

#include "api/conversion_files.hpp"
#include "cli/options.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

/// --rounding, --overflow, and where random bits come from.
void add_conversion_options(Command&, api::RoundingWords&, std::string& random_bits);
/// --block | --format --granularity [--block-size], and --axis.
void add_block_options(Command&, api::BlockTold&);

/// "5 inexact, 0 underflow, 1 overflow, 0 invalid"
std::string flags_text(const FlagCounts&);
Json flags_json(const FlagCounts&);

}  // namespace numemu::cli
