// The positions of a feature map that ZAP always computes, the same for all channels.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::policies {

/// The mask types of Shomron et al. (ECCV 2020); the share of positions that are computed.
inline constexpr int kLeastMaskType = 3;     ///< 1/3
inline constexpr int kLargestMaskType = 10;  ///< 8/9; between them 2/5, 1/2, 3/5, 2/3, 3/4, 7/9

/// The positions I_s (computed) and I_t (predicted) of a height x width map, row-major.
struct PositionMask {
  int type = 0;
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> computed;  ///< 1: computed, 0: predicted

  std::int64_t positions() const { return height * width; }
  std::int64_t computed_count() const;
};

/// A periodic tile (specification of sparsity, section 5b) cut to the map. Throws Error unless the
/// type is in 3..10 and the map has a position.
PositionMask position_mask(int type, std::int64_t height, std::int64_t width);

/// The share of computed positions in whole tiles: numerator and denominator.
struct MaskShare {
  std::int64_t computed = 0, of = 1;
  double value() const { return static_cast<double>(computed) / static_cast<double>(of); }
};
/// Throws Error unless the type is in 3..10.
MaskShare mask_share(int type);

}  // namespace numemu::policies
