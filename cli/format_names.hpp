// Short names that mean one format here and another in the names of matrix units.
#pragma once
#include <string>

namespace numemu::cli {

/// Says on stderr, once per name, where `text` (a format, also inside a block format) holds a short
/// name that units use for another format: "e4m3" is float8_e4m3, and float8_e4m3fn in units.
/// `where` is the option or file with the name.
void note_short_names(const std::string& where, const std::string& text);

/// Says it for every value of a key that ends in "format" in a recipe or sweep that was read.
void note_short_names_in(const std::string& file);

}  // namespace numemu::cli
