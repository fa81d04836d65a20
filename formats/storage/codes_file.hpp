// Arrays of codes on disk: .npy or .safetensors, packed or not, with their sidecar.
#pragma once
#include <optional>
#include <string>

#include "formats/format.hpp"
#include "formats/storage/codes.hpp"
#include "formats/storage/sidecar.hpp"

namespace numemu {

/// What the reader of a file of codes knows beforehand.
struct CodesTold {
  const Format* format = nullptr;      ///< nullptr: the sidecar or the dtype says it
  bool packed = false;                 ///< false: the sidecar says it, else not
  std::optional<BitOrder> order = {};  ///< nothing: the sidecar says it, else low_first
  std::string tensor = {};             ///< of a .safetensors file; empty: the only one
};

/// Reads codes. Accepted: container_type(), the unsigned integers of the same width, int8 for
/// integer formats of at most 8 bits (range checked), float16 for the format that it is. Packed
/// rows without a sidecar hold as many whole codes as fit. Hostile input: sizes are checked before
/// memory is taken. Throws Error naming the file and the element or key: wrong dtype or shape, a
/// code that the format does not have, padding bits that are not zero, a sidecar that contradicts.
Codes read_codes(const std::string& path, const CodesTold&);

/// The same, or plain numbers where no format is told and no sidecar names one: float16, float32
/// and float64 arrays are codes of these formats.
Codes read_numbers(const std::string& path, const CodesTold&);

/// Writes codes in containers (packed if `about` says so) and the sidecar: `about` completed with
/// format and logical shape. A .safetensors file gets one tensor of that name ("codes" if empty).
void write_codes(const std::string& path, const Format&, const ArrayShape&, const void* codes,
                 Sidecar about, const std::string& tensor = "");

/// Writes an .npy array that is neither codes nor numbers to read as codes (flags, tensor scales).
/// A sidecar of codes that had this name before is removed: it would speak for the array.
void write_array(const std::string& path, ArrayType type, const ArrayShape& shape,
                 const void* data);

/// Writes plain numbers, which are codes of float32 or float64 (.safetensors: of any format it
/// has), in the same way.
void write_numbers(const std::string& path, const Format&, const Array&,
                   const std::string& tensor = "");

}  // namespace numemu
