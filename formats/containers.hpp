// Codes in arrays: one integer of 1, 2, 4 or 8 bytes each.
#pragma once
#include <cstdint>

#include "formats/format.hpp"

namespace numemu {

/// Bytes that hold one code in an array: 1 up to 8 bits, 2 up to 16, 4 up to 32, else 8. A format
/// with a container shift (tfloat32) stores its codes shifted, so that 4 bytes are a float32.
int container_bytes(const Format&);

/// Element i of an array of codes, host byte order; bits beyond the format's width may be there.
std::uint64_t load_code(const Format&, const void* codes, std::int64_t i);
/// load_code(); throws an Error that names the position where it is not a code of the format.
std::uint64_t checked_code(const Format&, const void* codes, std::int64_t i);
void store_code(const Format&, void* codes, std::int64_t i, std::uint64_t code);

}  // namespace numemu
