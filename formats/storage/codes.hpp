// Codes in an array: which element type holds them, and whether every element is one.
#pragma once
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "formats/storage/array.hpp"

namespace numemu {

/// The type of a .npy file that holds codes of a format: uint8 up to 8 bits, uint16 up to 16,
/// float32 and float64 where a code is one (tfloat32), else uint32 and uint64. Elements are as wide
/// as container_bytes() of formats/convert.hpp.
ArrayType container_type(const Format&);

/// Codes in containers, logical shape, every one a code of the format.
struct Codes {
  const Format* format = nullptr;
  Array array;  ///< of container_type(*format)
};

/// Takes an array read from `path` as codes of the format and checks every element: the type must
/// be container_type(), the unsigned integer of the same width, int8 or int16 for signed integer
/// formats (sign-extended), or float16 for the format that it is. Throws Error naming `path` and
/// the element, and `said_by`, the file that named the format, if any.
Codes checked_codes(const std::string& path, const Format&, Array, const std::string& said_by = "");

/// "NAME", or "NAME (from SAID_BY)".
std::string named_by(const std::string& name, const std::string& said_by);

/// Throws Error "PATH: dtype: expected ACCEPTED WHAT, found FOUND".
void require_type(const std::string& path, ArrayType found, const std::vector<ArrayType>& accepted,
                  const std::string& what);

}  // namespace numemu
