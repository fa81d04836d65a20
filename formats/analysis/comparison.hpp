// A predicted figure against a measured one: interval and verdict.
#pragma once
#include <cstdint>

#include "formats/analysis/error_figures.hpp"
#include "formats/analysis/verdict.hpp"

namespace numemu {

struct Comparison {
  double low = 0, high = 0;  ///< 95 % interval of the measured figure
  Verdict verdict = Verdict::undecided;
};

/// Means of n independent draws: holds within 4 standard errors, the larger of the predicted and
/// the measured one. Undecided where the prediction is infinite, or 4 predicted standard errors
/// exceed what is predicted although that is not near zero by symmetry (`size` is the magnitude
/// that a mean of zero is to be compared with, 0 where the figure is its own size): a law with
/// heavy tails shows too little of itself in n draws.
Comparison compare_mean(const Figure& predicted, const Figure& measured, std::int64_t n,
                        double size = 0);
/// A probability estimated from n draws: the interval of Clopper and Pearson; fails where a count
/// as far from the prediction has a binomial probability below that of 4 standard errors.
Comparison compare_mass(const Figure& predicted, const Figure& measured, std::int64_t n);
/// Figures of the same sample: they differ by the random bits of sr(n) (variance as predicted, 4
/// standard errors) and the rounding of the two sums, else the prediction fails.
Comparison compare_sample(const Figure& predicted, const Figure& measured, std::int64_t n,
                          double size = 0);

}  // namespace numemu
