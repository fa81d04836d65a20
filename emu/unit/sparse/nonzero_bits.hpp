// Which codes of a format are zeros, and one bit per element of an array: whether it is not one.
#pragma once
#include <cstdint>
#include <optional>

#include "formats/format.hpp"

namespace numemu::unit {

/// A container holds zero (+0, -0, or with `ftz` any code that reads as zero) when
/// (container & magnitude) - first < count (modulo the container's width) and
/// (container & code) != never. Bits outside the code are ignored.
struct ZeroCodes {
  std::uint32_t magnitude = 0;  ///< the code's bits, without the sign of a floating format
  std::uint32_t first = 0, count = 0;
  std::uint32_t code = 0;   ///< the code's bits
  std::uint32_t never = 0;  ///< not a zero: NaN in the slot of -0, else a code that is none anyway

  /// T is uint8, uint16 or uint32: a container, its bits.
  template <class T>
  bool zero(T container) const {
    return static_cast<T>((container & static_cast<T>(magnitude)) - static_cast<T>(first)) <
               static_cast<T>(count) &&
           (container & static_cast<T>(code)) != static_cast<T>(never);
  }
};

/// Of a format of at most 32 bits.
ZeroCodes zero_codes(const Format&);
/// The container that reads as +0; nothing where the format has no zero (sign1, float8_e8m0fnu,
/// some codebooks).
std::optional<std::uint32_t> zero_container(const Format&);

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
