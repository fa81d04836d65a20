// Masks as bits: counts, order, sums and bytes.
#include "policies/mask/tile_mask.hpp"

#include <bit>
#include <cmath>
#include <vector>

#include "tests/catch.hpp"

namespace numemu::policies::tile_mask_test {
namespace {

const std::vector<std::uint8_t> kMask = {1, 0, 1, 0,  //
                                         0, 1, 1, 0,  //
                                         1, 1, 0, 0,  //
                                         0, 0, 0, 1};

TEST_CASE("tile check: rows and columns are counted", "[fast]") {
  const TileMask mask = tile_mask(kMask.data(), 4);
  CHECK(kept_count(mask) == 7);
  CHECK(keeps_at_most(mask, 2));
  CHECK_FALSE(keeps_at_most(mask, 1));
  CHECK_FALSE(keeps_exactly(mask, 2));
  std::vector<std::uint8_t> full = kMask;
  full[14] = 1;  // row 3 keeps two, column 2 three
  CHECK_FALSE(keeps_at_most(tile_mask(full.data(), 4), 2));
  CHECK_FALSE(keeps_exactly(tile_mask(full.data(), 4), 2));
  full = {1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1};
  CHECK(keeps_exactly(tile_mask(full.data(), 4), 2));
  full = {1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0};  // rows alone
  CHECK_FALSE(keeps_at_most(tile_mask(full.data(), 4), 2));
  full = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0};  // columns alone
  CHECK_FALSE(keeps_at_most(tile_mask(full.data(), 4), 2));
}

TEST_CASE("tile check: the earlier position decides", "[fast]") {
  const TileMask mask = tile_mask(kMask.data(), 4);
  CHECK_FALSE(keeps_earlier(mask, mask));
  std::vector<std::uint8_t> other = kMask;
  other[1] = 1;
  other[2] = 0;
  CHECK(keeps_earlier(tile_mask(other.data(), 4), mask));
  CHECK_FALSE(keeps_earlier(mask, tile_mask(other.data(), 4)));
  other = kMask;
  other[15] = 0;
  CHECK(keeps_earlier(mask, tile_mask(other.data(), 4)));
}

TEST_CASE("tile check: sums and bytes", "[fast]") {
  const TileMask mask = tile_mask(kMask.data(), 4);
  std::vector<std::int64_t> costs(16);
  std::vector<Wide> wide(16);
  std::vector<float> x(16);
  for (std::size_t i = 0; i < 16; ++i) {
    costs[i] = std::int64_t{1} << i;
    wide[i] = Wide{1} << (i + 70);
    x[i] = -static_cast<float>(i + 1);
  }
  x[1] = NAN;
  CHECK(kept_sum(mask, costs.data()) == 0b1000'0011'0110'0101);
  CHECK(kept_sum(mask, wide.data()) == Wide{0b1000'0011'0110'0101} << 70);
  std::vector<float> y(16, 99);
  std::vector<std::uint8_t> keep(16, 99);
  write_tile(mask, x.data(), y.data(), keep.data());
  CHECK(keep == kMask);
  for (std::size_t i = 0; i < 16; ++i)
    CHECK(std::bit_cast<std::uint32_t>(y[i]) ==
          (kMask[i] != 0 ? std::bit_cast<std::uint32_t>(x[i]) : 0U));
  write_tile(mask, x.data(), nullptr, nullptr);
  CHECK(tile_mask(keep.data(), 4) == mask);
}

}  // namespace
}  // namespace numemu::policies::tile_mask_test
