// Arrays as numpy's .npy files, and their headers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/storage/array.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/input_file.hpp"

namespace numemu {

struct NpyHeader {
  ArrayType type = ArrayType::float32;
  ArrayShape shape;
  bool fortran_order = false;
  bool big_endian = false;      ///< of elements wider than a byte
  bool truth = false;           ///< of bool: the type is int8, every byte must be 0 or 1
  std::int64_t text_bytes = 0;  ///< of an element where they are byte strings; the type is uint8
};

/// Most axes that numpy can hold (numpy 2.0).
inline constexpr std::size_t kMostAxes = 64;

/// Reads the dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }: the three keys
/// once each, in any order, then only spaces and one newline. `path` and `first_byte`, where the
/// text begins in the file, are for the Errors. Byte strings ('|S16') only where `with_text`.
NpyHeader parse_npy_header(const std::string& path, std::string_view text, std::int64_t first_byte,
                           bool with_text = false);

/// The place of the first byte that is no truth value, if any.
std::optional<std::int64_t> no_truth_value(const NpyHeader&, std::string_view data);

/// Everything before the data, version 1.0, little-endian, C order, padded to 64 bytes like numpy's
/// own.
std::string format_npy_header(ArrayType, const ArrayShape&);

/// Reads versions 1.0, 2.0 and 3.0 of real number types. Big-endian files and Fortran order are
/// converted to host order and C order. Hostile input: the size of the data is compared with the
/// file's before memory is taken; complex, object and structured types, bytes of bool other than 0
/// and 1, truncated files and trailing bytes throw Error naming the file and the byte.
Array read_npy(const std::string& path);
/// The array of an open file, from its present position.
Array read_npy(InputFile&);

/// Writes version 1.0, C order, little-endian, atomically. `data` holds the elements in C order.
void write_npy(const std::string& path, ArrayType type, const ArrayShape& shape, const void* data);
void write_npy(const std::string& path, const Array&);
/// A file of write_npy(), ready to take its place.
PendingFile pending_npy(const std::string& path, ArrayType type, const ArrayShape& shape,
                        const void* data);

}  // namespace numemu
