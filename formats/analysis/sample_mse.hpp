// Numbers sorted once: the squared error of any format at any scale then costs a step per value of
// the format, not one per number.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/analysis/outcome_law.hpp"
#include "formats/analysis/prefix_sums.hpp"

namespace numemu {

class SampleMse {
 public:
  /// x[0..n), all finite, n > 0.
  SampleMse(const double* x, std::int64_t n);
  /// The same where number i has a scale of its own, scales[i] >= 0, that of at() times it. Scales
  /// that differ by a common factor share one sample; a scale of 0 makes its number zero.
  SampleMse(const float* x, const double* scales, std::int64_t n);

  /// Mean of (scale * Q(x / scale) - x)^2 under a law whose outcomes are finite; stochastic ones in
  /// the limit of many random bits. Relative error about 4^M * 1e-16 for M mantissa bits, and with
  /// scales 2^-52 of the signal for each piece of the law.
  double at(const OutcomeLaw&, double scale) const;
  double largest() const;  ///< max |x| of a sample without scales
  double signal() const;   ///< mean of x^2

 private:
  /// Sums over numbers x = s v with the scale s: s^2, s x, x^2.
  struct Sums {
    double weight = 0, first = 0, second = 0;
  };
  Sums between(std::size_t first, std::size_t last) const;

  std::vector<double> sorted_;  ///< with scales the v
  PrefixSums<double> sums_;
  std::vector<Sums> scaled_;  ///< of the first i; empty without scales
  double lost_ = 0;           ///< sum of x^2 where the scale is 0
  double count_ = 0;
};

}  // namespace numemu
