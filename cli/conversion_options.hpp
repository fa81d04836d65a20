// The options of commands that round: --rounding, --overflow and where random bits come from.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "cli/options.hpp"
#include "formats/conversion.hpp"
#include "formats/storage/array.hpp"

namespace numemu::cli {

struct ConversionOptions {
  std::string rounding = "rne", overflow = "saturate", random_bits;
  std::optional<std::uint64_t> seed;
};

void add_conversion_options(Command&, ConversionOptions&);

/// A conversion that is ready to run, and the random words it points to.
struct SettledConversion {
  Conversion conversion;
  Array random_words;
  std::optional<std::uint64_t> seed;  ///< nothing where the caller supplied the random bits
};

/// Reads the options for an array of that shape; integers use their full two's complement range.
SettledConversion settle(const ConversionOptions&, const Format&, const ArrayShape&);

/// "5 inexact, 0 underflow, 1 overflow, 0 invalid"
std::string flags_text(const FlagCounts&);

}  // namespace numemu::cli
