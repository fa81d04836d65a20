// Loops that turn codes into elements, the best instruction set chosen at run time.
#pragma once
#include <cstdint>

#include "emu/unit/integer/elements.hpp"

namespace numemu::unit {

/// `to` has elements of `size` bytes, 1, 2 or 4, but not fewer than a code has.
void convert_codes(const std::uint8_t* codes, std::int64_t count, const ElementRule&, int size,
                   std::uint8_t* to);
void convert_codes(const std::uint16_t* codes, std::int64_t count, const ElementRule&, int size,
                   std::uint8_t* to);

/// to[i] = table[codes[i]] for a table of 256; AVX-512 VBMI.
void look_up_bytes(const std::uint8_t* codes, std::int64_t count, const std::uint8_t* table,
                   std::uint8_t* to);
bool has_byte_lookup();

}  // namespace numemu::unit
