// Masks as bits: counts, order, sums and bytes; magnitudes of a tile as integers.
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

template <class Cost>
std::vector<Cost> costs_of(const std::vector<float>& x) {
  const auto n = static_cast<int>(x.size());
  std::vector<Cost> costs(x.size());
  tile_costs(tile_unit(x.data(), n), x.data(), n, costs.data());
  return costs;
}

TEST_CASE("tile costs: magnitudes in one unit, exactly", "[fast]") {
  for (const std::vector<float>& x :
       std::vector<std::vector<float>>{{1, -2, 3, -0.5F},
                                       {0, -0.0F, 0, 0},
                                       {0x1p-149F, -0x1.fffffep-113F, 0, 0x1p-126F},
                                       {0x1.fffffep127F, 0x1p110F, 0x1.000002p100F, 1e38F},
                                       {0x1.8p20F, 0x1p-10F, 0x1.000002p-3F, -7}}) {
    const TileUnit unit = tile_unit(x.data(), 4);
    CHECK(unit.narrow);
    CHECK(unit.exact);
    const std::vector<std::int64_t> costs = costs_of<std::int64_t>(x);
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(std::ldexp(static_cast<double>(costs[i]), unit.lowest) == std::fabs(x[i]));
  }
}

TEST_CASE("tile costs: 128 bits where exponents lie far apart", "[fast]") {
  struct Case {
    float small;
    bool narrow;
  };
  // Narrow integers leave 52 bits to magnitudes; the lowest set bit counts, not the exponent.
  for (const Case& c : {Case{0x1p-51F, true}, Case{0x1p-52F, false}, Case{0x1.000002p-28F, true},
                        Case{0x1.000002p-29F, false}, Case{0x1p-90F, false}}) {
    const std::vector<float> x = {0x1.fffffep0F, c.small};
    const TileUnit unit = tile_unit(x.data(), 2);
    CHECK(unit.exact);
    CHECK(unit.narrow == c.narrow);
    const std::vector<Wide> costs = costs_of<Wide>(x);
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(std::ldexp(static_cast<double>(costs[i]), unit.lowest) == x[i]);
  }
}

TEST_CASE("tile costs: what 128 bits cannot hold is rounded down", "[fast]") {
  const std::vector<float> x = {0x1p100F, 0x1p-100F, 0x1.8p-14F, 0x1p-15F};
  const TileUnit unit = tile_unit(x.data(), 4);
  CHECK_FALSE(unit.exact);
  CHECK_FALSE(unit.narrow);
  const std::vector<Wide> costs = costs_of<Wide>(x);
  CHECK(std::ldexp(static_cast<double>(costs[0]), unit.lowest) == x[0]);
  CHECK(costs[1] == 0);
  for (const std::size_t i : {2U, 3U})
    CHECK(static_cast<double>(costs[i]) == std::floor(std::ldexp(double{x[i]}, -unit.lowest)));
  CHECK(costs[0] < (Wide{1} << 117));  // 1024 of them have room
}

TEST_CASE("tile costs: no number outweighs all numbers together", "[fast]") {
  const std::vector<float> x = {3, NAN, -INFINITY, 5, 0, 7};
  const std::vector<std::int64_t> costs = costs_of<std::int64_t>(x);
  CHECK(costs[1] == costs[2]);
  CHECK(costs[1] == costs[0] + costs[3] + costs[5] + 1);
  const std::vector<float> none = {NAN, INFINITY, 0, 0};
  CHECK(costs_of<std::int64_t>(none) == std::vector<std::int64_t>{1, 1, 0, 0});
  const std::vector<float> largest(1024, 0x1.fffffep127F);
  std::vector<float> mixed = largest;
  mixed[5] = INFINITY;
  const std::vector<std::int64_t> many = costs_of<std::int64_t>(mixed);
  CHECK(many[5] == 1023 * many[0] + 1);
  CHECK(many[5] < std::int64_t{1} << 52);  // 1024 of them have room
}

}  // namespace

}  // namespace numemu::policies::tile_mask_test
