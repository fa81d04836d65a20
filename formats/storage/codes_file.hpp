// Reading arrays of codes: .npy or .safetensors, packed or not, with their sidecar.
#pragma once
#include <optional>
#include <string>

#include "formats/format.hpp"
#include "formats/storage/codes.hpp"
#include "formats/storage/sidecar.hpp"
#include "formats/storage/stored_array.hpp"

namespace numemu {

/// What the caller specifies about a file of codes.
struct CodesTold {
  const Format* format = nullptr;      ///< nullptr: from the sidecar or the dtype
  bool packed = false;                 ///< false: from the sidecar, else not packed
  std::optional<BitOrder> order = {};  ///< nothing: from the sidecar, else low_first
  std::string tensor = {};             ///< of a .safetensors file; empty: the only one
  std::string told_by = "--format";    ///< the source of the format, for messages
};

/// Reads codes. Accepted: container_type(), the unsigned integers of the same width, int8 or
/// int16 for signed integer formats (range checked), float16 for the format that it is. Packed
/// rows without a sidecar hold as many whole codes as fit. Hostile input: sizes are checked before
/// memory is taken. Throws Error naming the file and the element or key: wrong dtype or shape, a
/// code that the format does not have, padding bits that are not zero, a sidecar that contradicts
/// or whose digest is another file's.
Codes read_codes(StoredArray&, const CodesTold&);
Codes read_codes(const std::string& path, const CodesTold&);

/// read_codes(), or plain numbers if neither caller nor sidecar names a format: float16, float32
/// and float64 arrays are codes of these formats.
Codes read_numbers(StoredArray&, const CodesTold&);
Codes read_numbers(const std::string& path, const CodesTold&);

}  // namespace numemu
