// The MSE of a sample as a function of the scale, from sums over its sorted numbers.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/analysis/outcome_law.hpp"

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
    return squares_.between(0, sorted_.size()) / static_cast<double>(sorted_.size());
  }

 private:
  /// Sums of the first i terms, each as the sum of two doubles, so that differences keep their
  /// relative accuracy.
  class Prefix {
   public:
    void add(double term);
    double between(std::size_t first, std::size_t last) const {
      return (high_[last] - high_[first]) + (low_[last] - low_[first]);
    }
    void reserve(std::size_t n);

   private:
    std::vector<double> high_{0}, low_{0};
  };
  std::size_t end_of(std::size_t first, double bound, bool bound_is_inside) const;

  std::vector<double> sorted_;
  Prefix values_, squares_;
};

}  // namespace numemu
