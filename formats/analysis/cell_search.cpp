// Which interval of a sorted partition each float32 lies in: binary search by arithmetic, level by
// level over a block.
#include "formats/analysis/cell_search.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace numemu {

float float_threshold(double bound, bool closed) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (bound > kLargest) return std::numeric_limits<float>::infinity();
  if (bound < -kLargest) return std::numeric_limits<float>::lowest();
  const auto nearest = static_cast<float>(bound);
  const bool fits = closed ? nearest >= bound : nearest > bound;
  return fits ? nearest : std::nextafterf(nearest, std::numeric_limits<float>::infinity());
}

CellSearch::CellSearch(std::vector<float> thresholds) : tree_(std::move(thresholds)) {
  levels_ = static_cast<int>(std::bit_width(tree_.size()));
  tree_.resize((std::size_t{1} << levels_) - 1, std::numeric_limits<float>::quiet_NaN());
}

void CellSearch::find(const float* x, int count, std::uint32_t* index) const {
  const float* const tree = tree_.data();
  for (int i = 0; i < count; ++i) index[i] = 0;
  for (int level = levels_ - 1; level >= 0; --level) {
    const std::uint32_t step = std::uint32_t{1} << level;
    for (int i = 0; i < count; ++i) {
      index[i] += static_cast<std::uint32_t>(x[i] >= tree[index[i] + step - 1]) << level;
    }
  }
}

}  // namespace numemu
