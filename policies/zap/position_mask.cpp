// The tiles of the eight mask types.
// Cold: a negligible share of any run (docs/build.md).
#include "policies/zap/position_mask.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "formats/error.hpp"

namespace numemu::policies {
namespace {

/// period x period characters, row by row: 1 computed, 0 predicted.
struct Tile {
  int period;
  std::string_view ones;
};

// Types 3 and 4 are the complements of 7 and 6.
constexpr Tile kTiles[] = {
    {3, "001010100"}, {5, "0010101010101000100110010"},
    {2, "1001"},      {5, "1101010101010111011001101"},
    {3, "110101011"}, {2, "1110"},
    {3, "111101011"}, {3, "111101111"},
};
static_assert(std::size(kTiles) == kLargestMaskType - kLeastMaskType + 1);

const Tile& tile_of(int type) {
  if (type < kLeastMaskType || type > kLargestMaskType) {
    throw Error("position mask: expected a type from " + std::to_string(kLeastMaskType) + " to " +
                std::to_string(kLargestMaskType) + ", got " + std::to_string(type));
  }
  return kTiles[type - kLeastMaskType];
}

}  // namespace

std::int64_t PositionMask::computed_count() const {
  return std::count(computed.begin(), computed.end(), std::uint8_t{1});
}

PositionMask position_mask(int type, std::int64_t height, std::int64_t width) {
  const Tile& tile = tile_of(type);
  if (height < 1 || width < 1) {
    throw Error("position mask: expected a map of at least one position, got " +
                std::to_string(height) + " x " + std::to_string(width));
  }
  PositionMask mask{type, height, width, {}};
  mask.computed.reserve(static_cast<std::size_t>(height * width));
  for (std::int64_t y = 0; y < height; ++y) {
    const std::string_view row =
        tile.ones.substr(static_cast<std::size_t>(y % tile.period * tile.period));
    for (std::int64_t x = 0; x < width; ++x)
      mask.computed.push_back(row[static_cast<std::size_t>(x % tile.period)] == '1');
  }
  return mask;
}

MaskShare mask_share(int type) {
  const Tile& tile = tile_of(type);
  return {std::count(tile.ones.begin(), tile.ones.end(), '1'),
          static_cast<std::int64_t>(tile.ones.size())};
}

}  // namespace numemu::policies
