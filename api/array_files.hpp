// Arrays and numbers that calls read from files: opened together, with sidecars whose every name is
// known.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/storage/codes.hpp"
#include "formats/storage/stored_array.hpp"
#include "formats/value.hpp"

namespace numemu::api {

/// open_together(), which knows no policies; throws Error also where a sidecar names a scale rule
/// that there is not, or not for its block format.
std::vector<StoredArray> open_inputs(const std::vector<ArrayName>&);
/// One file.
StoredArray open_input(const std::string& path);

/// Reads numbers as float32: float16, float32, float64, signed integers, or codes of the format
/// `from` ("": of the sidecar's, if there is one). Signed integers are numbers; unsigned ones may
/// be codes of any format, so `from` must name it. Quantizing must not round its input first:
/// throws Error naming the file and the first element that is not a float32. Networks compute in
/// float32: with `rounded`, such numbers of formats are rounded to nearest even and counted there.
Array read_float32(const std::string& path, const std::string& from,
                   std::int64_t* rounded = nullptr);

/// Text is for formats whose values no array type holds, and for eyes; it is exact both ways.
/// One number per line, optionally with spaces around it; blank lines may follow the last. "-" is
/// the standard input. Throws Error naming file and line.
std::vector<Value> read_text_numbers(const std::string& path);
/// One code of the format a line, in hexadecimal: all with 0x, or none. The same lines otherwise.
Codes read_text_codes(const std::string& path, const Format&);
/// Decoded values, one hexadecimal float a line, in C order.
std::string text_of_numbers(const Codes&);

/// Throws Error where the name of a file that an array is written to is one of another kind: .txt,
/// .csv, .npz and others.
void require_array_name(const std::string& option, const std::string& path);

/// Throws Error where `path` is "-": only text goes through the standard streams.
void require_file(const std::string& option, const std::string& path);

}  // namespace numemu::api
