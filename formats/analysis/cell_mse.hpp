// The mean squared error of a format as a function of its scale, many scales in a moment.
#pragma once
#include <vector>

#include "formats/analysis/cells.hpp"
#include "formats/analysis/density.hpp"

namespace numemu {

/// The MSE of a format that saturates, under a law and a rounding without random bits, by partial
/// moments of the cells; where format and law are symmetric, of the positive half. Much faster than
/// mean_square_error(), but narrow cells lose digits to cancellation.
class CellMse {
 public:
  /// The density must outlive it.
  CellMse(const Format&, const Rounding&, const Density&, bool symmetric_law);

  double operator()(double scale) const;
  /// For numbers of that root mean square and that largest magnitude: the best power of two, or
  /// the best scale, as a float32 number, of 16 an octave beside that power and golden sections
  /// around the two lowest minima.
  double best_scale(double rms, double reach, bool power_of_two) const;

 private:
  double smallest() const;
  double largest() const;

  std::vector<Cell> cells_;
  const Density& law_;
  bool half_ = false;
};

}  // namespace numemu
