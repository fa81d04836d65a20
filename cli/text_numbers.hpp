// Numbers as lines of text, in files or on the standard streams.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/codes.hpp"
#include "formats/value.hpp"

namespace numemu::cli {

/// One number per line, optionally with spaces around it; blank lines may follow the last. "-" is
/// the standard input. Throws Error naming file and line.
std::vector<Value> read_text_numbers(const std::string& path);

/// One code of the format a line, in hexadecimal: all with 0x, or none. The same lines otherwise.
Codes read_text_codes(const std::string& path, const Format&);

/// Decoded values of codes in containers, one hexadecimal float a line, in C order; "-" is the
/// standard output. A file loses the sidecar of codes that had its name before.
void write_text_numbers(const std::string& path, const Format&, const Array& codes);

/// Throws Error where `path` is "-": only text goes through the standard streams.
void require_file(const std::string& option, const std::string& path);

}  // namespace numemu::cli
