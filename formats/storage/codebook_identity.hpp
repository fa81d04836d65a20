// The identity of the codebook of a file of codes: its path may change, its entries may not.
#pragma once
#include <string>

#include "formats/format.hpp"

namespace numemu {

/// FILE of "codebook(FILE)"; "" for any other name.
std::string codebook_file(const std::string& format_name);

/// Lower-case hexadecimal SHA-256 of the entries as little-endian float64, -0 as 0; "" for a format
/// that is not a codebook.
std::string codebook_sha256(const Format&);

}  // namespace numemu
