// One tensor of a safetensors file, as stored.
#pragma once
#include <string>
#include <string_view>

#include "formats/storage/array.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/safetensors_header.hpp"

namespace numemu {

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
