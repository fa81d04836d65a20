// Codes of 1 to 8 bits packed into rows of bytes, and back.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/storage/array.hpp"

namespace numemu {

/// Which end of a byte the first code takes.
enum class BitOrder : std::uint8_t {
  low_first,  ///< a little-endian bit stream: element i at bits [i b, i b + b) of its row
  high_first  ///< the first element in the highest bits of its byte; widths 1, 2, 4 (and 8)
};

/// "low-first", "high-first"; throws Error with the nearest known name.
BitOrder parse_bit_order(std::string_view name);
std::string to_string(BitOrder);
/// Throws Error where codes of `bits` bits have no such order.
void check_bit_order(BitOrder, int bits);

/// Bytes of one packed row of `length` codes: every row starts on a byte.
std::int64_t packed_row_bytes(std::int64_t length, int bits);

/// Rows along the last axis of a shape in codes; a scalar is one row of one code.
struct PackedRows {
  std::int64_t count = 1, length = 1;
  explicit PackedRows(const ArrayShape&);
};
/// The shape in bytes of packed codes of that shape.
ArrayShape packed_shape(ArrayShape, int bits);

/// Packs `rows` rows of `length` codes of `bits` bits (1..8), one per byte, their low bits counted;
/// `out` holds rows * packed_row_bytes() bytes. The bits after the last code of a row are zero.
/// Threads; the same bytes for any number of them.
void pack_codes(const std::uint8_t* codes, std::int64_t rows, std::int64_t length, int bits,
                BitOrder order, std::uint8_t* out);

/// The inverse. Returns the first row whose padding bits are not all zero (a sign that the length
/// is not the writer's), -1 if there is none; the codes are written in any case.
std::int64_t unpack_codes(const std::uint8_t* packed, std::int64_t rows, std::int64_t length,
                          int bits, BitOrder order, std::uint8_t* out);

}  // namespace numemu
