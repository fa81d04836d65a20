// Exact error moments of a format under a density or a sample: cell by cell, never through the
// codec.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/analysis/cells.hpp"
#include "formats/analysis/density.hpp"

namespace numemu {

/// Moments of e = scale * Q(x / scale) - x.
struct ErrorMoments {
  double mean = 0;         ///< E[e]
  double mse = 0;          ///< E[e^2]
  double mse_normal = 0;   ///< the part of mse from normal cells, where the step is proportional to
                           ///< the value, without what lies outside the format's range
  double signal = 0;       ///< E[x^2]
  double saturated = 0;    ///< mass below the lowest or above the largest value
  double flushed = 0;      ///< mass of other non-zero x that becomes zero
  double sqnr_db() const;  ///< 10 log10(signal / mse); +inf when mse is 0
};

/// `scale` is finite and positive; with `cells` from cells(), by hand or from a codebook:
/// ascending, touching, the outermost reaching to infinity. Relative error of mse about 4^M * 1e-13
/// for M mantissa bits (differences of distribution functions cancel in narrow cells).
ErrorMoments error_moments(const std::vector<Cell>& cells, double scale, const Density&);
/// The mean over x[0..n), n > 0. `scale` is a float32 value and the cells' bounds and values have
/// at most 29 significant bits: then bound * scale and value * scale are exact in a double and
/// every x falls into exactly the cell the quantizer chooses, ties included. Infinities and NaN in
/// x make the moments infinite or NaN. The same bits for any number of threads.
ErrorMoments error_moments(const std::vector<Cell>& cells, double scale, const float* x,
                           std::int64_t n);
/// error_moments() under stochastic rounding, from brackets(): expectations over the random bits.
ErrorMoments stochastic_error_moments(const std::vector<Cell>& brackets, double scale,
                                      const Density&);
ErrorMoments stochastic_error_moments(const std::vector<Cell>& brackets, double scale,
                                      const float* x, std::int64_t n);

}  // namespace numemu
