// The expected relative error E|x - Q(x)| / |x| of a floating format under a lognormal law, and the
// split of its bits and the mean that make it least.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "formats/analysis/cells.hpp"
#include "formats/format.hpp"

namespace numemu::experiments::lognormal_gradients {

// Source: specs/mechanisms.md and specs/quantization.md, 'Neural gradients are near-lognormal'.
// log2|x| has the mean `mean` and the standard deviation `sigma` after scaling: base 2 throughout.

/// One sign bit, and how the others are divided.
struct Split {
  int exponent = 1, mantissa = 0;
  int bits() const { return 1 + exponent + mantissa; }
  std::string name() const;    ///< "1-4-3"
  std::string format() const;  ///< "e4m3+finite": bias 2^(exponent-1) - 1, every code a number
};

/// Every split of `bits` (3 or more) with an exponent bit, by ascending exponent bits.
std::vector<Split> splits_of(int bits);

/// The idealised format, in closed form: zero below 2^-E, saturation at 2^E, E = 2^(exponent-1),
/// between them the mean rounding error 2^-mantissa / (8 ln 2) of log-uniform numbers.
double idealised_error(const Split&, double sigma, double mean);
/// The same format's relative error of one number x > 0, which it rounds in its own binade.
double idealised_error_of(const Split&, double x);

/// The values of a real format.
class FormatGrid {
 public:
  explicit FormatGrid(const Format&);
  /// Of cells as cells() gives them, those below zero left out.
  explicit FormatGrid(const std::vector<Cell>&);
  /// The expected relative error to nearest with saturation, exact: cell by cell, by the partial
  /// moments of 1 and 1 / x.
  double expected(double sigma, double mean) const;
  /// Of one number x > 0.
  double error_of(double x) const;
  /// The mean with the least expected error, a multiple of 1/4.
  double best_mean(double sigma) const;

 private:
  std::vector<Cell> cells_;          ///< from zero on
  double lowest_ = 0, highest_ = 0;  ///< log2 of the least and the largest positive value
};

/// Where the split of least error changes as sigma grows from 0.1 to 25.
struct Switch {
  double sigma;
  Split from, to;
};
using ErrorOf = std::function<double(const Split&, double sigma)>;
std::vector<Switch> switches(int bits, const ErrorOf&);
/// The split of least error.
Split best_split(int bits, double sigma, const ErrorOf&);

}  // namespace numemu::experiments::lognormal_gradients
