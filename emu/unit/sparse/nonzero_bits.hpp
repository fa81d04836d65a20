// One bit per element of an array of codes: whether it is not a zero.
#pragma once
#include <cstdint>

#include "emu/unit/sparse/zero_codes.hpp"

namespace numemu::unit {

/// Words that nonzero_bits() writes for `count` elements: one more than they fill, so that a group
/// can be read across the last border.
inline std::int64_t bit_words(std::int64_t count) { return (count + 63) / 64 + 1; }

/// Bit i % 64 of words[i / 64] = element i is not a zero; the bits after the last element are 0. T
/// is uint8, uint16 or float (read as bits).
template <class T>
void nonzero_bits(const ZeroCodes&, const T* codes, std::int64_t count, std::uint64_t* words);

/// `size` <= 16 bits from position `first` on.
inline std::uint32_t bits_at(const std::uint64_t* words, std::int64_t first, int size) {
  const auto shift = static_cast<int>(first % 64);
  const std::uint64_t* word = words + first / 64;
  // Two shifts, because one by 64 is undefined.
  const std::uint64_t bits = word[0] >> shift | word[1] << 1 << (63 - shift);
  return static_cast<std::uint32_t>(bits) & ((1u << size) - 1);
}

}  // namespace numemu::unit
