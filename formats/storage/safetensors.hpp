// Safetensors: the header, read and checked, and single tensors of a file.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/storage/array.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/input_file.hpp"

namespace numemu {

/// A dtype. Shapes are logical; elements of less than a byte form one little-endian bit stream over
/// the whole tensor, which must end on a byte.
struct SafetensorsType {
  std::string_view name;  ///< "F8_E4M3"
  int bits;               ///< of one element
  std::string_view
      format;  ///< the row of formats.def whose codes are stored; "" where there is none
};

/// Every dtype of the format; nullptr for another name.
const SafetensorsType* safetensors_type(std::string_view name);
/// The dtype that stores codes of the format with that canonical name; nullptr where there is none.
const SafetensorsType* safetensors_type_of_format(std::string_view format);
/// The names of the dtypes that store codes of formats.
std::vector<std::string_view> safetensors_code_types();

/// Longest header accepted, as in the reference implementation.
inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;

/// One tensor of the file; its bytes are begin .. end-1 counted from the end of the header.
struct SafetensorsEntry {
  std::string name;
  const SafetensorsType* type = nullptr;
  ArrayShape shape;
  std::int64_t elements = 0, begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry>
      entries;  ///< in file order: they cover the data without hole or overlap
  std::vector<std::pair<std::string, std::string>> metadata;  ///< sorted by key
};

/// Parses the text between the length and the data. A dtype that is not among `accepted` (all of
/// them if it is empty) is an Error. Throws Error naming `path`, the tensor and the key.
SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view text,
                                           std::int64_t data_bytes,
                                           const std::vector<std::string_view>& accepted = {});

/// Reads length and header from the start of a file, which is left at the first byte of data.
SafetensorsHeader read_safetensors_header(InputFile& file,
                                          const std::vector<std::string_view>& accepted = {});

/// The bytes before the data: the length and the text, padded with spaces so that the data start
/// at a multiple of 8 bytes. Throws Error naming `path` where a name is not UTF-8.
std::string format_safetensors_header(const std::string& path, const SafetensorsHeader&);

/// A name in quotes for a one-line message: escaped, and cut when it is long.
std::string quote_name(std::string_view name);

struct StoredTensor {
  std::string name;
  const SafetensorsType* type = nullptr;
  ArrayShape shape;           ///< logical
  std::int64_t elements = 0;  ///< of the shape
  Bytes data;                 ///< elements * type->bits / 8 bytes
};

bool is_safetensors(std::string_view path);

/// Reads the tensor of that name, or the only one where `name` is empty; the others are passed
/// over. Throws Error naming the file and the nearest name.
StoredTensor read_safetensors_tensor(InputFile&, const std::string& name);

/// A file of one tensor, ready to take its place; `data` holds elements * type.bits / 8 bytes.
/// Throws Error where the elements do not end on a byte.
PendingFile pending_safetensors_tensor(const std::string& path, const std::string& name,
                                       const SafetensorsType& type, const ArrayShape& shape,
                                       const void* data);

}  // namespace numemu
