// An encoder by search: the neighbours in the list of a format's values decide, never bits.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "formats/codec.hpp"
#include "formats/format.hpp"

namespace numemu::oracle {

/// What the search needs: the magnitudes in ascending order with their codes. Comparisons of
/// doubles are exact here because values and midpoints of formats of at most 16 bits are.
struct Grid {
  const Format* format;
  std::vector<double> magnitudes;  ///< of the codes first_code, first_code + 1, ...
  double beyond = 0;               ///< the value after the largest if the exponents went on
  double smallest_normal = 0;      ///< 0 for integers
  double below_normal = 0;         ///< its lower neighbour if the exponents went on downwards
};

/// `negative`: the negative side of a two's complement reaches one further.
inline Grid make_grid(const Format& f, bool negative) {
  Grid grid{.format = &f, .magnitudes = {}};
  const bool integer = f.kind == Kind::integer;
  const std::uint64_t count = f.largest_code(integer && negative && f.is_signed) + 1;
  for (std::uint64_t code = 0; code < count; ++code)
    grid.magnitudes.push_back(std::abs(to_double(decode(f, code))));
  const double largest = grid.magnitudes.back();
  if (integer) {
    grid.beyond = largest + 1;
    return grid;
  }
  const double m = std::ldexp(1.0, -f.mantissa_bits);
  grid.beyond = largest + std::exp2(std::floor(std::log2(largest))) * m;
  const double low = std::ldexp(1.0, f.field_zero == FieldZero::subnormal ? 1 - f.bias : -f.bias);
  const bool gap = f.field_zero == FieldZero::normal;
  grid.smallest_normal = gap ? low * (1 + m) : low;
  grid.below_normal = gap ? low : low * (1 - m / 2);
  return grid;
}

/// Does a number strictly between low (whose code is odd or not) and high go up?
inline bool goes_up(double a, double low, double high, bool low_is_odd, bool negative,
                    RoundingMode mode) {
  const double middle = low / 2 + high / 2;
  switch (mode) {
    case RoundingMode::rne:
      return a > middle || (a == middle && low_is_odd);
    case RoundingMode::rna:
      return a >= middle;
    case RoundingMode::rup:
      return !negative;
    case RoundingMode::rdn:
      return negative;
    case RoundingMode::rodd:
      return !low_is_odd;
    default:
      return false;
  }
}

inline Encoded overflow(const Format& f, bool infinite, bool negative, RoundingMode mode,
                        Overflow axis) {
  const bool inward = mode == RoundingMode::rtz || mode == RoundingMode::rodd ||
                      (mode == RoundingMode::rup && negative) ||
                      (mode == RoundingMode::rdn && !negative);
  if (infinite && axis != Overflow::saturate && f.has_infinity())
    return {f.infinity_code(negative), 0};
  const Encoded largest{f.largest_code(negative), kOverflow | kInexact};
  if (axis != Overflow::ieee || (!infinite && inward)) return largest;
  if (f.has_infinity()) return {f.infinity_code(negative), kOverflow | kInexact};
  if (f.has_nan()) return {f.nan_code(negative), kOverflow | kInexact};
  return largest;
}

/// encode() for the deterministic modes; formats of at most 16 bits without flushing.
inline Encoded encode(const Grid& positive, const Grid& negative_grid, double x, RoundingMode mode,
                      Overflow axis) {
  const Format& f = *positive.format;
  if (std::isnan(x)) {
    if (!f.has_nan()) return {f.largest_code(), kInvalid};
    return {f.nan_code(std::signbit(x)), 0};
  }
  const bool negative = std::signbit(x);
  const Encoded refused{f.has_nan() ? f.nan_code() : 0, kInvalid};
  const bool no_sign = negative && !f.is_signed && x != 0;
  if (std::isinf(x)) return no_sign ? refused : overflow(f, true, negative, mode, axis);

  const Grid& grid = negative ? negative_grid : positive;
  const double a = std::abs(x);
  const auto& list = grid.magnitudes;
  std::uint64_t code = 0;
  bool inexact = true;
  if (a < list[0]) {
    if (no_sign) return refused;  // no zero to round to
  } else {
    const auto above = std::upper_bound(list.begin(), list.end(), a);
    code = static_cast<std::uint64_t>(above - list.begin()) - 1;
    inexact = list[code] != a;
    const double next = above == list.end() ? grid.beyond : *above;
    if (a >= grid.beyond) {
      ++code;
    } else if (inexact && goes_up(a, list[code], next, (code & 1) != 0, negative, mode)) {
      ++code;
    }
  }
  if (no_sign && !(code == 0 && f.has_zero())) return refused;
  if (code == list.size()) return overflow(f, false, negative, mode, axis);

  bool tiny = a < grid.smallest_normal;
  if (tiny && a > grid.below_normal) {
    const std::uint64_t normal_code = f.field_zero == FieldZero::scale ? 0
                                      : f.field_zero == FieldZero::normal
                                          ? 1
                                          : std::uint64_t{1} << f.mantissa_bits;
    const bool below_is_odd = ((normal_code - 1) & 1) != 0;
    tiny = !goes_up(a, grid.below_normal, grid.smallest_normal, below_is_odd, negative, mode);
  }
  const int flags = inexact ? kInexact | (tiny ? kUnderflow : 0) : 0;
  if (negative && (code != 0 || f.has_negative_zero()) && f.is_signed)
    code =
        f.kind == Kind::integer ? (f.code_mask() + 1 - code) & f.code_mask() : code | f.sign_bit();
  return {code, static_cast<std::uint8_t>(flags)};
}

/// Every value, the midpoint to the next one, and the neighbours of both in float32 and float64;
/// and extremes.
inline std::vector<double> probes(const Grid& grid) {
  std::vector<double> list = {0.0,      0x1p-149,    0x1p-1074, 0x1p127, 0x1.fffffffffffffp1023,
                              HUGE_VAL, std::nan("")};
  const auto around = [&](double x) {
    for (const double y : {x, std::nextafter(x, 0.0), std::nextafter(x, HUGE_VAL)})
      list.push_back(y);
    const auto f = static_cast<float>(x);
    if (f == x) {
      list.push_back(std::nextafter(f, 0.0F));
      list.push_back(std::nextafter(f, HUGE_VALF));
    }
  };
  std::vector<double> magnitudes = grid.magnitudes;
  magnitudes.push_back(grid.beyond);
  magnitudes.push_back(2 * grid.beyond);
  for (std::size_t i = 0; i + 1 < magnitudes.size(); ++i) {
    around(magnitudes[i]);
    around(magnitudes[i] / 2 + magnitudes[i + 1] / 2);
  }
  const double normal = grid.smallest_normal;
  around(grid.below_normal / 2 + normal / 2);
  for (double x = grid.magnitudes[0]; x > 0x1p-140 && x > grid.magnitudes[0] / 16; x /= 2)
    around(x);
  const std::size_t count = list.size();
  for (std::size_t i = 0; i < count; ++i) list.push_back(-list[i]);
  return list;
}

}  // namespace numemu::oracle
