// The transposable 2:4 mask of 4 x 4 tiles that keeps the largest sum of magnitudes: all 90 masks.
#pragma once
#include <array>
#include <cstdint>

namespace numemu::policies {

/// A mask of a 4 x 4 tile: bit 15 is element (0, 0), bit 0 element (3, 3); the larger number keeps
/// the earlier positions.
using Mask4x4 = std::uint16_t;

/// The mask with two kept in every row and column whose sum of magnitudes is largest as a real
/// number, of equal sums the largest Mask4x4; NaN and infinities count alike and more than all
/// finite elements together. The reference: 90 sums of integers (tile_mask.hpp). x [4, 4].
Mask4x4 best_4x4(const float* x);

/// Those masks, many tiles at a time. x [count, 4, 4]; y is x where kept and +0 elsewhere, keep
/// is 1 and 0; either may be null.
void keep_4x4(const float* x, std::int64_t count, float* y, std::uint8_t* keep);

/// The 90 masks in the order of their row-major bit strings.
///
/// An element's column weighs 4, 2, 1, 0 in the number of its row, so that the six ways to keep two
/// of a row are 6, 5, ... 1 in the order of their bit strings; rows 0, 1, 2 weigh 36, 6, 1 (row 3
/// follows from the others). A mask's number is therefore a sum over the elements that it keeps.
namespace tile_4x4 {

inline constexpr int kRows = 4, kTile = 16, kPairs = 6;

// Column pairs in the order of their bit strings, the largest first; 5 - p is the complement of p.
inline constexpr std::array<std::array<int, 2>, kPairs> kPair = {
    {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}};
constexpr int pair_of(int a, int b) {
  for (int p = 0; p < kPairs; ++p)
    if ((kPair[p][0] == a && kPair[p][1] == b) || (kPair[p][0] == b && kPair[p][1] == a)) return p;
  return kPairs;
}

// What an element adds to a mask's number; the place is that less kFirstPlace.
constexpr int place(int element) {
  constexpr int kRowWeight[kRows] = {36, 6, 1, 0}, kColumnWeight[kRows] = {4, 2, 1, 0};
  return kRowWeight[element / kRows] * kColumnWeight[element % kRows];
}
inline constexpr int kFirstPlace = 36 + 6 + 1;  // what the last mask's numbers add up to
inline constexpr int kPlaces = kPairs * kPairs * kPairs;

constexpr Mask4x4 row_bits(int pair) {
  return static_cast<Mask4x4>(8 >> kPair[pair][0] | 8 >> kPair[pair][1]);
}
struct MaskAt {
  Mask4x4 mask;
  int place;         // in [0, kPlaces), the larger the larger the mask
  int upper, lower;  // its pairs in rows 0 and 1, in rows 2 and 3
};
// All of them, the largest first.
inline constexpr std::array<MaskAt, 90> kMasks = [] {
  std::array<MaskAt, 90> masks{};
  int count = 0;
  for (int p = 0; p < kPairs; ++p)
    for (int q = 0; q < kPairs; ++q)
      for (int r = 0; r < kPairs; ++r)
        for (int s = 0; s < kPairs; ++s) {
          bool two_each = true;
          for (int column = 0; column < kRows; ++column) {
            int kept = 0;
            for (const int pair : {p, q, r, s}) kept += row_bits(pair) >> column & 1;
            two_each = two_each && kept == 2;
          }
          if (!two_each) continue;
          masks[count++] = {static_cast<Mask4x4>(row_bits(p) << 12 | row_bits(q) << 8 |
                                                 row_bits(r) << 4 | row_bits(s)),
                            36 * (5 - p) + 6 * (5 - q) + 5 - r, kPairs * p + q, kPairs * r + s};
        }
  return masks;
}();

}  // namespace tile_4x4

}  // namespace numemu::policies
