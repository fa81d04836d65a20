// A predicted figure against a measured one: interval and verdict; figures measured on random
// samples.
#pragma once
#include <cstdint>
#include <functional>

#include "formats/analysis/distribution.hpp"
#include "formats/analysis/error_figures.hpp"
#include "formats/analysis/verdict.hpp"
#include "formats/conversion.hpp"

namespace numemu {

struct FigureComparison {
  double low = 0, high = 0;  ///< 95 % interval of the measured figure
  Verdict verdict = Verdict::undecided;
};

/// Means of n independent draws: holds within 4 standard errors, the larger of the predicted and
/// the measured one. Undecided where the prediction is infinite, or 4 predicted standard errors
/// exceed what is predicted although that is not near zero by symmetry (`size` is the magnitude
/// that a mean of zero is to be compared with, 0 where the figure is its own size): a law with
/// heavy tails shows too little of itself in n draws.
FigureComparison compare_mean(const Figure& predicted, const Figure& measured, std::int64_t n,
                              double size = 0);
/// A probability estimated from n draws: the interval of Clopper and Pearson; fails where a count
/// as far from the prediction has a binomial probability below that of 4 standard errors.
FigureComparison compare_mass(const Figure& predicted, const Figure& measured, std::int64_t n);
/// Figures of the same sample: they differ by the random bits of sr(n) (variance as predicted, 4
/// standard errors) and the rounding of the two sums, else the prediction fails.
FigureComparison compare_sample(const Figure& predicted, const Figure& measured, std::int64_t n,
                                double size = 0);

/// The sums of x^2 and of squared errors over `count` numbers from number `first` on.
struct SqnrSums {
  double signal = 0, error = 0;
};
using SqnrPart = std::function<SqnrSums(std::int64_t first, std::int64_t count)>;
/// Half of the 95 % interval in dB of an SQNR that was measured on n random numbers, which are cut
/// into parts, independent draws of like size: 1.96 standard errors of 10 log10 of the ratio,
/// propagated linearly. 0 where nothing has an error; NaN of fewer than two parts.
double sqnr_half_interval(std::int64_t n, std::int64_t parts, const SqnrPart&);
/// Whether n draws of a law show too little of its tails: 4 standard errors of the mean of x^2
/// exceed it. An SQNR of such draws, and its interval, are those of the draws alone.
bool heavy_tails(const Density&, std::int64_t n);

/// Draws numbers 0..n-1 of the distribution (stream `data`, tensor 0, draw 0), rounds each exact
/// quotient x / scale with encode_element() and decodes. Figures with the sample's variances.
/// `scale` is finite and positive; formats of at most 16 bits. The same bits for any number of
/// threads.
ErrorFigures monte_carlo(const Conversion&, double scale, const Distribution&, std::uint64_t seed,
                         std::int64_t n);
/// monte_carlo() with the numbers x[0..n) themselves.
ErrorFigures measure(const Conversion&, double scale, const double* x, std::int64_t n);

}  // namespace numemu
