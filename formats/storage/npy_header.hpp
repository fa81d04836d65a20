// The header of a .npy file: magic, version, and a Python dictionary in one line.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/storage/array.hpp"

namespace numemu {

struct NpyHeader {
  ArrayType type = ArrayType::float32;
  ArrayShape shape;
  bool fortran_order = false;
  bool big_endian = false;      ///< of elements wider than a byte
  std::int64_t text_bytes = 0;  ///< of an element where they are byte strings; the type is uint8
};

/// Most axes that numpy can hold (numpy 2.0).
inline constexpr std::size_t kMostAxes = 64;

/// Reads the dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }: the three keys
/// once each, in any order, then only spaces and one newline. `path` and `first_byte`, where the
/// text begins in the file, are for the Errors. Byte strings ('|S16') only where `with_text`.
NpyHeader parse_npy_header(const std::string& path, std::string_view text, std::int64_t first_byte,
                           bool with_text = false);

/// Everything before the data, version 1.0, little-endian, C order, padded to 64 bytes like numpy's
/// own.
std::string format_npy_header(ArrayType, const ArrayShape&);

}  // namespace numemu
