// What a unit's sums differ from exact ones by, from its description and the law of the products.
#pragma once
#include <cstdint>
#include <string>

#include "emu/unit/description.hpp"
#include "emu/unit/error/product_law.hpp"

namespace numemu::unit {

// How often sums of independent products leave a register, and what that costs.

/// A sum of `count` independent terms, taken as normal: means and variance of one term.
struct SumLaw {
  double mean = 0, variance = 0, count = 0;
};

/// That the sum exceeds `limit` (in magnitude: at either end) when it is complete.
double beyond_at_end(const SumLaw&, double limit);
/// The same on the way or at the end. A Brownian path with drift; the limit is moved outwards by
/// 0.5826 standard deviations of a term, as paths are looked at after whole terms only
/// (Siegmund, Sequential Analysis, 1985, chapter X).
double beyond_on_way(const SumLaw&, double limit);

/// Mean square of the error where the register stops at `limit` after every term: what is lost at
/// an end is what the path's maximum exceeds the end by.
double saturation_noise(const SumLaw&, double limit);
/// The same where the complete sum is taken modulo 2 `limit`.
double wrapping_noise(const SumLaw&, double limit);

/// Of result - exact sum of the products, over dot products of independent products.
struct SumError {
  double noise = 0;  ///< mean square, in the products' units squared; of finite results
  double bias = 0;   ///< mean
  /// Probability that a register overflows: on the way or at the end; where a register wraps or is
  /// clipped once, at the end of its sum.
  double overflow = 0;
  std::string none = {};  ///< why there is no figure; noise and bias are NaN then
};

/// The sum of k products, C = +0. The first 16 additions are made by the register's rounding on
/// members of an ensemble; from there on the sum's law is followed in five moments (sum_walk.hpp).
/// A step of several products is one addend, cut by the exponent of the register that it meets.
/// Inner sums (chunks, chains, two levels, instructions to which C is added) are the addends of the
/// next level. Ensembles have 4,096 members drawn by `seed`; the same figures for the same seed.
/// Two's complement registers of integer cores only overflow. No figure: tables, flushed subnormal
/// operands, whole trees of more than 1,024 products, directed rounding that leads sums away, and
/// where more than 1 % of the sums become infinite or half of them saturate. The rounding of inputs
/// belongs to the operands.
SumError sum_error(const UnitDescription&, const ProductLaw&, std::int64_t k,
                   std::uint64_t seed = 0);

}  // namespace numemu::unit
