// Tests for zero codes of a format, as one comparison that vectorises.
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

}  // namespace numemu::unit
