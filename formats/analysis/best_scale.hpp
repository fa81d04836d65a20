// The scale that loses least: the best power of two and the best real one.
#pragma once
#include <cstdint>

#include "formats/analysis/density.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"

namespace numemu {

/// A scale (a float32 value) and the MSE it leaves, under saturation.
struct ScaleChoice {
  double scale = 1, square = 0;
};

struct BestScale {
  ScaleChoice real, power_of_two;
  double signal = 0;  ///< E[x^2]
};

/// The scales in [2^-126, 2^127] with the least MSE of scale * Q(x / scale) under saturation (with
/// the other overflow rules the MSE of what stays finite would be least where nothing does).
/// Power of two: every exponent is tried between the one that saturates nearly everything and the
/// one that makes everything zero; of two within 1e-9 of each other the nearer to 1 is taken.
/// Real: MSE has many local minima, so 128 scales an octave (32 for formats of more than 1000
/// values) are tried around the best powers of two, the best local minima among them are narrowed
/// by Brent's method to 2^-24 relative, and the winner is rounded to float32. A minimum between two
/// of those scales may be missed; under directed roundings, where the MSE of a sample jumps as
/// numbers change their cell, up to about 1e-3 of the MSE. Throws Error for formats of more than 16
/// bits and for laws and samples that are zero everywhere.
BestScale best_scale(const Format&, const Rounding&, const Density&);
/// best_scale() for x[0..n), all finite, n > 0; takes 40 bytes per element.
BestScale best_scale(const Format&, const Rounding&, const double* x, std::int64_t n);

}  // namespace numemu
