// The step function of a format: each finite value and the interval of reals that rounds to it.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/format.hpp"
#include "formats/rounding.hpp"

namespace numemu {

/// Reals between low and high round to `value`; `low` itself does when `low_closed`, `high` when
/// the next cell's low is open (a cell of one point, low == high, exists under rodd). Measure zero
/// for a density, but it decides ties in a sample. The outermost cells reach -inf and +inf
/// (saturation). `normal`: the value lies in a binade of normal numbers, where the error is
/// proportional to the value; otherwise the step is fixed (integers, subnormals, zero).
struct Cell {
  double low, high, value;
  bool normal;
  bool low_closed = true;
};

/// Cells of a format of at most 16 bits in ascending order under a deterministic rounding with
/// saturation. Symmetric integers leave out the most negative code when `symmetric`. Throws Error
/// for sr (see brackets()) and for wider formats. The sign format has two cells in every mode, sr
/// included. Midpoints of codebooks are rounded to a double. Negative inputs of unsigned formats
/// are counted to the lowest cell, also where they encode as NaN.
std::vector<Cell> cells(const Format&, const Rounding&, bool symmetric);

/// A finite value of a format and the parity of its code, which decides rne ties and rodd.
struct GridPoint {
  double value;
  bool odd;
};

/// The values of a format of at most 16 bits in ascending order, zero once; without the most
/// negative code of a signed integer when `symmetric`.
std::vector<GridPoint> grid_points(const Format&, bool symmetric);

/// Where the upper of two neighbours begins, and whether it owns that point.
struct Boundary {
  double at;
  bool upper;
};

/// The boundary between two neighbouring values under a deterministic rounding; Error for sr.
Boundary rounding_boundary(const GridPoint& low, const GridPoint& high, RoundingMode);

/// For stochastic rounding: cells [v_i, v_{i+1}] between neighbours, `value` = v_i; error inside
/// has variance (x - v_i)(v_{i+1} - x), the limit of many random bits. `normal` when both ends are.
/// One cell fewer than values. Throws Error for formats of more than 16 bits or one value, and for
/// those that flush subnormals (the flush comes after the rounding, so it is biased).
std::vector<Cell> brackets(const Format&, bool symmetric);

// Which interval of a sorted partition each float32 lies in: exact, branch-free, a block at a time.

/// The smallest float32 that is at or above `bound` (`closed`), or strictly above it: x >= bound
/// for a double bound becomes a comparison of floats with the same result for every float x.
float float_threshold(double bound, bool closed);

/// Finds i such that thresholds[i - 1] <= x < thresholds[i] (i in [0, thresholds.size()]; NaN gives
/// 0).
class CellSearch {
 public:
  static constexpr int kBlock =
      64;  ///< elements per call; one is as deep as the search, many overlap

  /// `thresholds` ascending, equal ones allowed (the last of them wins).
  explicit CellSearch(std::vector<float> thresholds);
  /// index[i] for x[0..count), count <= kBlock.
  void find(const float* x, int count, std::uint32_t* index) const;

 private:
  std::vector<float> tree_;  ///< sorted, padded with NaN (never reached) to 2^levels - 1
  int levels_ = 0;
};

}  // namespace numemu
