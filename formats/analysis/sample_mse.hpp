// The MSE of a sample as a function of the scale, from sums over its sorted numbers.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/analysis/outcome_law.hpp"
#include "formats/analysis/prefix_sums.hpp"

namespace numemu {

/// Sorted once; then each scale costs about one step per piece of the law instead of one per
/// number.
class SampleMse {
 public:
  /// x[0..n), all finite, n > 0.
  SampleMse(const double* x, std::int64_t n);
  /// Mean of (scale * Q(x / scale) - x)^2 under a law whose outcomes are finite; stochastic ones in
  /// the limit of many random bits. Relative error about 4^M * 1e-16 for M mantissa bits.
  double at(const OutcomeLaw&, double scale) const;
  double largest() const;  ///< max |x|
  double signal() const {
    return sums_.between(sorted_.data(), 0, sorted_.size()).second /
           static_cast<double>(sorted_.size());
  }

 private:
  std::vector<double> sorted_;
  PrefixSums<double> sums_;
};

}  // namespace numemu
