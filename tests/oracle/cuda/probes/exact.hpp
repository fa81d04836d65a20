// Exact numbers that probes are written in, and their codes in an element type: a code, or nothing
// where the type has none.
#pragma once
#include <cstdint>
#include <optional>

#include "emu/oracle/recording/element.hpp"

namespace numemu::oracle::recording::probing {

/// +-significand * 2^exponent; significand 0 is a zero that keeps its sign.
struct Exact {
  bool negative = false;
  std::uint64_t significand = 0;
  int exponent = 0;
};
constexpr Exact zero() { return {}; }
constexpr Exact power(int exponent) { return {false, 1, exponent}; }
constexpr Exact scaled(std::uint64_t significand, int exponent) {
  return {false, significand, exponent};
}
constexpr Exact integer(std::int64_t value) {
  return {value < 0, static_cast<std::uint64_t>(value < 0 ? -value : value), 0};
}
constexpr Exact operator-(Exact x) { return {!x.negative, x.significand, x.exponent}; }
/// Exponent of the leading bit of a number that is not zero.
int leading_exponent(Exact);

using Code = std::optional<std::uint64_t>;

/// The code of exactly this number; nothing where it would be rounded, overflow or lack a sign.
Code code_of(Element, Exact);

/// Exponents of floating-point types: of the least and the greatest normal numbers, of the least
/// subnormal.
int least_exponent(Element);
int greatest_exponent(Element);
int subnormal_exponent(Element);
Exact largest(Element);  ///< also of integers

Code infinity_code(Element, bool negative = false);
/// Quiet: the top mantissa bit is set. `payload` fills the bits below it; e4m3 has one NaN alone,
/// quiet and without payload. Nothing where the code would be an infinity.
Code nan_code(Element, bool negative, bool quiet, std::uint64_t payload);

/// Code of the scale 2^exponent.
Code scale_code(Element, int exponent);

}  // namespace numemu::oracle::recording::probing
