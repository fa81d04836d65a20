// Moments of dot products of numbers rounded at random, from the numbers and the format alone.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "formats/analysis/outcome_law.hpp"
#include "formats/format.hpp"

namespace numemu::stats {

/// A random figure.
struct Moments {
  double mean = 0, variance = 0;
};
/// Of the product of two independent figures.
Moments product(const Moments&, const Moments&);
/// Of the sum of independent figures, the second times a factor.
Moments sum(const Moments&, const Moments&, double factor = 1);

/// What stochastic rounding makes of a number: one of its two neighbours in the format.
struct RoundedElement {
  double variance = 0;
  double ends = 0;  ///< the sum of both neighbours
};

/// Numbers x / scale rounded stochastically to a format, with saturation.
class StochasticLaw {
 public:
  StochasticLaw(const Format&, const Rounding&);
  RoundedElement of(double x, double scale) const;
  std::vector<RoundedElement> of(std::span<const float> x, double scale) const;

 private:
  OutcomeLaw law_;
};

/// Numbers with what rounding makes of them.
struct RoundedVector {
  std::span<const float> x;
  std::span<const RoundedElement> rounded;
};
/// x . y under independent draws: the variance is the sum of x^2 v' + y^2 v + v v'.
Moments two_draws(const RoundedVector& x, const RoundedVector& y);
/// x . x of a single draw: the mean exceeds |x|^2 by the sum of the variances v; the variance is
/// the sum of those of the squares, v times the square of the sum of both neighbours.
Moments one_draw(const RoundedVector& x);

}  // namespace numemu::stats
