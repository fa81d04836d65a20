// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/reference/nearness.hpp"

#include <limits>

#include "emu/unit/reference/divergence.hpp"
#include "emu/unit/reference/losses.hpp"
#include "formats/codec.hpp"

namespace numemu::unit {
namespace {

/// -1, 0, 1
int sign_of(const Value& v) { return v.kind == Class::zero ? 0 : v.negative ? -1 : 1; }

Value halved(Value v) {
  --v.exponent;
  return v;
}

/// Codes in the order of their numbers; zeros are one.
std::int64_t rank(const Format* format, int bits, std::uint64_t code) {
  if (format == nullptr || format->kind != Kind::floating) {
    const int unused = 64 - (format == nullptr ? bits : format->bits);
    return static_cast<std::int64_t>(code << unused) >> unused;
  }
  const std::uint64_t magnitude = format->is_signed ? code & ~format->sign_bit() : code;
  const auto steps = static_cast<std::int64_t>(magnitude);
  return format->is_signed && (code & format->sign_bit()) != 0 ? -steps : steps;
}

}  // namespace

Nearer nearer(const ReferenceDot& dot, std::int64_t i, std::int64_t j, const Value& first,
              const Value& second) {
  if (same_number(first, second)) return Nearer::neither;
  if (!is_finite(first) || !is_finite(second) || !is_finite(dot.exact(i, j))) {
    const Value exact = dot.exact(i, j);
    if (is_finite(exact) && is_finite(first) != is_finite(second))
      return is_finite(first) ? Nearer::first : Nearer::second;
    if (same_number(first, exact)) return Nearer::first;
    return same_number(second, exact) ? Nearer::second : Nearer::neither;
  }
  // The nearer of two numbers is on the same side of their middle as the sum.
  const int above = sign_of(dot.exact(i, j, {-halved(first), -halved(second)}));
  const int larger = sign_of(exact_sum({first, -second}));
  if (above == 0) return Nearer::neither;
  return above == larger ? Nearer::first : Nearer::second;
}

std::uint64_t ulps_between(const Format* format, int bits, std::uint64_t first,
                           std::uint64_t second) {
  if (format != nullptr) {
    const bool first_nan = decode(*format, first).kind == Class::nan;
    const bool second_nan = decode(*format, second).kind == Class::nan;
    if (first_nan && second_nan) return 0;
    if (first_nan || second_nan) return std::numeric_limits<std::uint64_t>::max();
  }
  const auto x = static_cast<std::uint64_t>(rank(format, bits, first));
  const auto y = static_cast<std::uint64_t>(rank(format, bits, second));
  return rank(format, bits, first) > rank(format, bits, second) ? x - y : y - x;
}

}  // namespace numemu::unit
