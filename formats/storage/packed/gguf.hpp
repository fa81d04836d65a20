// The header of a GGUF file: its texts, and where each tensor stands; blocks of ggml's types to
// numbers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/storage/array.hpp"
#include "formats/storage/input_file.hpp"

namespace numemu {

struct GgufEntry {
  std::string name;
  std::uint32_t type = 0;      ///< of ggml
  ArrayShape shape;            ///< slowest axis first, the opposite of the file's order
  std::int64_t elements = 0;   ///< of the shape
  std::int64_t begin = 0;      ///< its first byte in the file
  std::int64_t described = 0;  ///< where the header describes it
};

struct GgufHeader {
  std::vector<GgufEntry> entries;                             ///< in the order of the header
  std::vector<std::pair<std::string, std::string>> metadata;  ///< values that are strings, by key
};

/// Bytes that ggml stores for so many elements of a type: nothing where it is no type that is read,
/// or where the elements are no whole number of blocks.
std::optional<std::int64_t> ggml_bytes(std::uint32_t type, std::int64_t elements);
/// Elements of a block of a type that is read.
std::int64_t ggml_block(std::uint32_t type);
/// "Q4_K"; "type 99" for one without a name.
std::string ggml_type_name(std::uint32_t type);

/// Reads versions 2 and 3, little-endian. Hostile input: counts and sizes are compared with the
/// file's before memory is taken. Throws Error naming the file, the byte and the tensor, also where
/// the bytes of one leave the file, overlap those of another or do not begin at the alignment.
GgufHeader read_gguf_header(InputFile&);

/// Writes the elements of one block of a type that is read (ggml_bytes()). False where a scale of
/// it is NaN or infinite.
bool decode_ggml_block(std::uint32_t type, const std::uint8_t* block, float* out);

}  // namespace numemu
