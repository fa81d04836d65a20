// Arrays as numpy's .npy files.
#pragma once
#include <string>

#include "formats/storage/array.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/input_file.hpp"

namespace numemu {

/// Reads versions 1.0, 2.0 and 3.0 of real number types. Big-endian files and Fortran order are
/// converted to host order and C order. Hostile input: the size of the data is compared with the
/// file's before memory is taken; bool, complex, object and structured types, truncated files and
/// trailing bytes throw Error naming the file and the byte.
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
