// A number as integers: sign, significand and exponent; to and from the codes of the elements.
#pragma once
#include <cstdint>

#include "emu/oracle/recording/element.hpp"

namespace numemu::oracle::recording::replay {

enum class Class : std::uint8_t { finite, infinite, nan };

/// finite: significand * 2^(exponent - mantissa bits of its element), left as encoded: a subnormal
/// has the least normal exponent and no leading bit.
struct Number {
  std::uint64_t significand = 0;
  int exponent = 0;
  bool negative = false;
  Class kind = Class::finite;
};

/// The exponent that a zero has where zeros take part in the largest exponent (MMA-Sim).
constexpr int kZeroExponent = -126;

/// Of the 13 low bits of a tf32 nothing is left; a zero has exponent kZeroExponent.
Number decode(const ElementInfo&, std::uint64_t code);

/// Two's complement or unsigned.
std::int64_t decode_integer(const ElementInfo&, std::uint64_t code);

enum class Rounding : std::uint8_t { toward_zero, nearest_even };

/// How a result is written.
struct Writing {
  Element element;
  Rounding rounding;
  int kept;              ///< fraction bits that are written; the others are zero
  bool largest_finite;   ///< what an overflow toward zero gives; else infinity
  bool keeps_zero_sign;  ///< a negative value that rounds to zero gives -0
  bool flushes;          ///< subnormal results become zeros
};

/// The code of (-1)^negative * magnitude * 2^exponent. The lowest bit of a magnitude of 64 bits may
/// be sticky.
std::uint64_t encode(const Writing&, bool negative, std::uint64_t magnitude, int exponent);
std::uint64_t infinity_code(Element, bool negative);
/// 0x7fffffff, 0x7fff; float64 0xfff8000000000000 (CUDART_NAN of CUDA's math_constants.h).
std::uint64_t canonical_nan(Element);
bool is_nan(Element, std::uint64_t code);
bool is_zero(Element, std::uint64_t code);

}  // namespace numemu::oracle::recording::replay
