// The numbers that commands quantize: float32, from any file that holds nothing else.
#pragma once
#include <cstdint>
#include <string>

#include "formats/storage/array.hpp"

namespace numemu::cli {

/// Reads numbers as float32: float16, float32, float64, signed integers, or codes of the format
/// `from` ("": of the sidecar's, if there is one). Signed integers are numbers; unsigned ones may
/// be codes of any format, so `from` must name it. Throws Error naming the file and the first
/// element that is not a float32; with `rounded`, such numbers of formats are rounded to nearest
/// even and counted there.
Array read_float32(const std::string& path, const std::string& from,
                   std::int64_t* rounded = nullptr);

}  // namespace numemu::cli
