// Elements rounded under a scale, and their squared error.
#pragma once
#include <cstddef>
#include <limits>
#include <vector>

#include "formats/conversion.hpp"

namespace numemu {

/// What rounds to infinity in float32, as its magnitude.
inline constexpr double kBeyondFloat32 = 0x1.ffffffp127;

/// Pieces of the line of x / scale, ascending and touching. In piece k an element becomes
/// low[k] * scale or high[k] * scale: the same number unless random bits choose between them. Its
/// squared error, or the expectation, is |(low scale - x) (high scale - x)|.
struct ElementGrid {
  std::vector<double> from;   ///< where a piece begins; the first one at -inf, in a half at 0
  std::vector<char> closed;   ///< from[k] itself belongs to piece k
  std::vector<double> least;  ///< the least float64 number of a piece
  std::vector<double> low, high;

  std::size_t size() const { return from.size(); }
  /// Piece k begins at or below x. Exact where the significant bits of the scale and of the numbers
  /// at which pieces begin add up to at most 53, as they do for shipped formats (24 + 29, 28 + 4).
  bool reaches(std::size_t k, double x, double scale) const {
    const double at = from[k] * scale;
    return at < x || (at == x && closed[k]);
  }
  /// Of a half: some magnitude becomes infinite in float32.
  bool may_overflow(double scale) const { return high.back() * scale >= kBeyondFloat32; }
  /// Of a half: the magnitude x does.
  bool overflows(double x, double scale) const;
};

/// The grid of a conversion under saturation, and its two halves by magnitude.
struct ElementGrids {
  explicit ElementGrids(const Conversion&);

  ElementGrid line, positive, negative;
  bool folds = false;      ///< both halves are the same
  bool keeps_zero = true;  ///< 0 becomes 0
  /// Where nothing saturates, no scale has less error than its half: twice a number of the grid is
  /// one too, as far as it goes, and a coarser grid is never nearer (it may be under rodd).
  bool doubles = false;
};

/// The grids of a conversion, rebuilt only where it differs from the last one of this thread.
const ElementGrids& element_grids(const Conversion&);

/// A sum in float64 and how far it may be from the exact one.
struct Bounded {
  double sum = 0, bound = 0;
};
/// The squared error of x[0..n).
Bounded squared_error(const ElementGrid& line, const float* x, std::int64_t n, double step);

/// The code with the least squared error of those considered, the first of them on a tie: by sums
/// in float64 where they decide, by integers where they do not.
class LeastOfCodes {
 public:
  LeastOfCodes(const ElementGrid& line, const float* x, std::int64_t n)
      : line_(line), x_(x), n_(n) {}
  void consider(std::int64_t code, double step);
  std::int64_t code() const { return code_; }
  double at_most() const { return least_.sum + least_.bound; }

 private:
  const ElementGrid& line_;
  const float* x_;
  std::int64_t n_;
  Bounded least_{std::numeric_limits<double>::infinity(), 0};
  double step_ = 0;  ///< 0: nothing was considered
  std::int64_t code_ = 0;
};

}  // namespace numemu
