#include "policies/mask/kernels/tile_4x4.hpp"

#include <array>

#include "policies/mask/tile_costs.hpp"

namespace numemu::policies {
namespace {

using namespace tile_4x4;

// [kPairs p + q]: what pair p keeps of the first row and pair q of the second.
template <class Cost>
std::array<Cost, kPairs * kPairs> two_rows(const Cost* first, const Cost* second) {
  std::array<Cost, kPairs * kPairs> sums;
  for (int p = 0; p < kPairs; ++p)
    for (int q = 0; q < kPairs; ++q)
      sums[kPairs * p + q] =
          (first[kPair[p][0]] + first[kPair[p][1]]) + (second[kPair[q][0]] + second[kPair[q][1]]);
  return sums;
}

template <class Cost>
Mask4x4 best_mask(const Cost* costs) {
  const auto upper = two_rows(costs, costs + kRows), lower = two_rows(costs + 8, costs + 12);
  Cost best = -1;
  Mask4x4 at = 0;
  for (const MaskAt& m : kMasks) {  // the largest bit string first
    const Cost sum = upper[m.upper] + lower[m.lower];
    at = sum > best ? m.mask : at;
    best = sum > best ? sum : best;
  }
  return at;
}

}  // namespace

Mask4x4 best_4x4(const float* x) {
  const TileUnit unit = tile_unit(x, kTile);
  if (unit.narrow) {
    std::int64_t costs[kTile];
    tile_costs(unit, x, kTile, costs);
    return best_mask(costs);
  }
  Wide costs[kTile];
  tile_costs(unit, x, kTile, costs);
  return best_mask(costs);
}

}  // namespace numemu::policies
