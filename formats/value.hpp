// The real number behind a code: sign, exponent and significand as integers.
#pragma once
#include <cstdint>
#include <limits>

namespace numemu {

enum class Class : std::uint8_t { zero, finite, infinite, nan };

constexpr double kInf = std::numeric_limits<double>::infinity();

/// (-1)^negative * significand * 2^exponent. A finite value has a non-zero significand, not
/// normalised; a NaN's holds its payload, the fraction left-aligned to 52 bits. `sticky`: the
/// real number lies strictly between significand and significand + 1 (in units of 2^exponent), so
/// that an inexact quotient is rounded only once.
struct Value {
  Class kind = Class::zero;
  bool negative = false;
  bool sticky = false;
  std::int32_t exponent = 0;
  std::uint64_t significand = 0;
};

/// Exact conversions between values and host numbers (from the bits, no arithmetic).
Value value_of(float x);
Value value_of(double x);
/// The double equal to `v`; `v` must be exactly representable (true for every code of every format
/// up to float64).
double to_double(const Value& v);
/// x / s as a value with a sticky bit, s finite and positive: what "exact quotient, one rounding"
/// rounds.
Value exact_quotient(const Value& x, const Value& s);

Value operator-(Value);

/// From the first bit of the significand that is 1 to the last; 0 for all that is not finite.
int significant_bits(const Value&);
/// The same number with the shortest significand: exact products have no bits to spare for zeros.
Value shortest(Value);

/// A NaN whose payload lacks the quiet bit. Only formats whose NaNs are IEEE's have them; a NaN
/// without a payload is quiet.
inline bool is_signalling(const Value& v) {
  constexpr std::uint64_t kQuiet = std::uint64_t{1} << 51;  // payloads are left-aligned to 52 bits
  return v.kind == Class::nan && v.significand != 0 && (v.significand & kQuiet) == 0;
}

}  // namespace numemu
