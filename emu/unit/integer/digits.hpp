// Operands of at most 8 bits as integers of a few balanced base-256 digits.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Value of code x = 2^low * sum over i of 256^i * int8(tables[i][x]), for every code present.
struct Digits {
  std::vector<std::vector<std::uint8_t>> tables;  ///< 1 to 4, of 256
  int low = 0;
  int bits = 0;  ///< the integers are at least -2^bits and below 2^bits
};

/// Nothing where NaN or infinity is present, four digits are too few, padding is not zero, or this
/// CPU has no has_byte_lookup(). Throws Error as source_size() does.
std::optional<Digits> find_digits(const Operand&, std::int64_t rows, std::int64_t depth);

}  // namespace numemu::unit
