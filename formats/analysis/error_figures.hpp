// Exact expectations of the errors of a conversion: errors, SQNR, masses.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/analysis/density.hpp"
#include "formats/analysis/outcome_law.hpp"

namespace numemu {

/// A mean and the variance of one draw: the mean measured with n draws has the variance `variance`
/// / n (of a mean over some of the draws, these are n times their share).
struct Figure {
  double mean = 0, variance = 0;
};

/// e = scale * Q(x / scale) - x. Errors are means over the x whose result is finite (all of them
/// unless `infinite` or `nan` is positive); masses are probabilities.
struct ErrorFigures {
  Figure error;      ///< E[e]
  Figure gain;       ///< E[x e] / E[x^2]: the relative change of amplitude, which symmetric laws do
                     ///< not hide as they hide E[e]. Variance by the delta method
  Figure outward;    ///< E[sign(x) e]: how far magnitudes grow on average
  Figure square;     ///< E[e^2], the MSE
  Figure relative;   ///< E[(e/x)^2] over x that are not zero; +inf where the integral diverges
  Figure signal;     ///< E[x^2]
  Figure sqnr;       ///< 10 log10(signal / square) in dB; +inf without error. Variance by the delta
                     ///< method
  Figure overflow;   ///< flag OF: the rounded number lies beyond the largest finite value
  Figure underflow;  ///< flag UF: not exact, and below the smallest normal number after rounding
  Figure to_zero;    ///< x that are not zero and become zero
  Figure infinite;   ///< results that are infinite
  Figure nan;        ///< results that are NaN
};

/// Sums over results, each weighted by its probability.
struct FigureSums {
  double weight = 0, finite = 0, error = 0, square = 0, fourth = 0;
  double nonzero = 0, relative = 0, relative_fourth = 0, signal = 0, signal_square = 0, cross = 0;
  double projection = 0, projection_signal = 0;  ///< of x e, and of x^3 e
  double outward = 0, outward_square = 0;        ///< of sign(x) e, and of e^2 where x is not zero
  double overflow = 0, underflow = 0, to_zero = 0, infinite = 0, nan = 0;

  /// The input x became `value` with this weight; the flags are added by the caller.
  void add(double weight, double x, double value);
  FigureSums& operator+=(const FigureSums&);
  /// Means and variances as if every unit of weight were a draw of its own.
  ErrorFigures figures() const;
};

/// Exact integration under a density, piece by piece: Gauss rules on intervals where the integrand
/// is smooth, which lose nothing to cancellation in narrow cells (relative error about 1e-13; test:
/// error_figures_test). sr(n): gap by gap, step by step of up_probability() where all the steps
/// are at most kMostSteps, else with the straight line they follow and its second-order correction
/// (relative error of the order of 4^-n, largest in a gap next to zero).
ErrorFigures error_figures(const OutcomeLaw&, double scale, const Density&);
/// Its `square` alone, several times faster.
double mean_square_error(const OutcomeLaw&, double scale, const Density&);
inline constexpr std::int64_t kMostSteps = std::int64_t{1} << 18;

/// The means over x[0..n), n > 0, all finite. `scale` is a float32 value, so that bound * scale is
/// exact and every x falls where the codec puts it, ties included. Under sr the expectations over
/// the random bits, with the variance these bits leave. The same bits for any number of threads.
ErrorFigures error_figures(const OutcomeLaw&, double scale, const double* x, std::int64_t n);

}  // namespace numemu
