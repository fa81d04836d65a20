// Which interval of a sorted partition each float32 lies in: exact, branch-free, a block at a time.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu {

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
