// The exact transposable mask against every mask, against a table over rows, and on published
// vectors.
#include <cmath>
#include <map>
#include <vector>

#include "policies/mask/rules/transposable.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/tile_oracles.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace numemu::policies::transposable_exact_test {
namespace {

using testing::all_masks;
using testing::best_by_table;
using testing::best_of;

TileMask mask_of(const std::vector<std::uint8_t>& keep, int size) {
  return tile_mask(keep.data(), size);
}

TEST_CASE("exact tile: vectors of the specification", "[fast]") {
  const std::vector<float> first = {12, 2, 10, 7, 6, 16, 5, 4, 13, 14, 11, 9, 1, 8, 3, 15};
  CHECK(exact_tile(first.data(), 4, 2) ==
        mask_of({1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1}, 4));
  const std::vector<float> second = {3, 11, 16, 8, 5, 9, 7, 14, 1, 12, 13, 15, 2, 6, 10, 4};
  CHECK(exact_tile(second.data(), 4, 2) ==
        mask_of({0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0}, 4));
  const auto sum = [](const std::vector<float>& x) {
    const std::vector<std::int64_t> costs(x.begin(), x.end());
    return kept_sum(exact_tile(x.data(), 4, 2), costs.data());
  };
  CHECK(sum(first) == 89);
  CHECK(sum(second) == 85);
  const std::vector<float> adversarial = {1.125F, 1, 1, 0};
  CHECK(exact_tile(adversarial.data(), 2, 1) == mask_of({0, 1, 1, 0}, 2));
}

TEST_CASE("exact tile: where every mask ties the earliest positions are kept", "[fast]") {
  std::vector<float> x(1024);
  for (int i = 0; i < 1024; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i + 1);
  const std::vector<std::int64_t> costs(x.begin(), x.end());
  CHECK(kept_sum(exact_tile(x.data(), 4, 2), costs.data()) == 68);
  for (const bool equal : {false, true})
    for (const int m : {2, 4, 8, 16, 32}) {
      if (equal) std::fill(x.begin(), x.end(), 0.0F);
      TileMask expected{m};  // two blocks on the diagonal
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j)
          if ((i < m / 2) == (j < m / 2)) expected.rows[static_cast<std::size_t>(i)] |= 1U << j;
      CHECK(exact_tile(x.data(), m, m / 2) == expected);
    }
}

TEST_CASE("exact tile: every mask of small tiles, all N, with many ties", "[fast]") {
  const RandomSource random{.seed = 5, .stream = Stream::vectors};
  std::uint64_t draw = 0;
  for (const int m : {1, 2, 3, 4})
    for (int n = 1; n <= m; ++n) {
      const std::vector<TileMask> masks = all_masks(m, n);
      std::vector<float> x(static_cast<std::size_t>(m * m));
      std::vector<std::int64_t> costs(x.size());
      int wrong = 0;
      for (int tile = 0; tile < 400; ++tile) {
        const int values = tile % 5 == 4 ? 1 << 20 : 2 + tile % 5;
        for (std::size_t i = 0; i < x.size(); ++i) {
          costs[i] = random.bits(draw, 32) % static_cast<unsigned>(values);
          x[i] = random.bits(draw++, 32) % 2 == 0 ? -static_cast<float>(costs[i])
                                                  : static_cast<float>(costs[i]);
        }
        const TileMask expected = best_of(masks, costs.data());
        wrong += exact_tile(x.data(), m, n) != expected;
        const std::vector<Wide> wide(costs.begin(), costs.end());
        wrong += exact_tile(wide.data(), m, n) != expected;
      }
      INFO(n << ":" << m);
      CHECK(wrong == 0);
    }
}

TEST_CASE("exact tile: all tiles of 3 x 3 from three values", "[fast]") {
  for (int n = 1; n <= 2; ++n) {
    const std::vector<TileMask> masks = all_masks(3, n);
    int wrong = 0;
    for (int number = 0; number < 19683; ++number) {
      std::int64_t costs[9];
      for (int i = 0, left = number; i < 9; ++i, left /= 3) costs[i] = left % 3;
      wrong += exact_tile(costs, 3, n) != best_of(masks, costs);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("exact tile: 90 masks of 4 x 4", "[fast]") {
  CHECK(all_masks(4, 2).size() == 90);
  CHECK(all_masks(4, 1).size() == 24);
  const std::vector<TileMask> masks = all_masks(4, 2);
  // Costs that make one mask the only best one: each is found.
  int wrong = 0;
  for (const TileMask& mask : masks) {
    std::int64_t costs[16];
    for (int e = 0; e < 16; ++e) costs[e] = mask(e / 4, e % 4) ? 1 : 0;
    wrong += exact_tile(costs, 4, 2) != mask;
  }
  CHECK(wrong == 0);
}

// Sums of many small integers tie often, so the rule for ties decides most of these.
int wrong_by_table(int m, int n, int values, int tiles) {
  const RandomSource random{.seed = 6, .stream = Stream::vectors, .tensor = 1};
  std::uint64_t draw = 0;
  std::vector<std::int64_t> costs(static_cast<std::size_t>(m * m));
  int wrong = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    for (std::int64_t& cost : costs) cost = random.bits(draw++, 32) % static_cast<unsigned>(values);
    wrong += exact_tile(costs.data(), m, n) != best_by_table(costs.data(), m, n);
  }
  return wrong;
}

TEST_CASE("exact tile: ties of larger tiles, by a table over rows", "[fast]") {
  for (const int values : {2, 3, 10}) {
    CHECK(wrong_by_table(5, 2, values, 20) == 0);
    CHECK(wrong_by_table(6, 3, values, 2) == 0);
    CHECK(wrong_by_table(6, 2, values, 5) == 0);
    CHECK(wrong_by_table(8, 1, values, 5) == 0);
  }
}

TEST_CASE("exact tile: ties of 8 x 8, by a table over rows", "[slow]") {
  for (const int values : {2, 3, 10}) {
    CHECK(wrong_by_table(6, 3, values, 100) == 0);
    CHECK(wrong_by_table(8, 2, values, 20) == 0);
    CHECK(wrong_by_table(8, 4, values, 3) == 0);
  }
}

TEST_CASE("exact tile: sums of float32 that float32 cannot hold decide", "[fast]") {
  const TileMask main = mask_of({1, 0, 0, 1}, 2), side = mask_of({0, 1, 1, 0}, 2);
  for (const float small : {0x1p-30F, 0x1p-60F, 0x1p-100F}) {
    const std::vector<float> x = {1, 1, small, 0}, y = {1, 2, small, 1}, z = {1, 2, -0.0F, 1};
    CHECK(exact_tile(x.data(), 2, 1) == side);
    CHECK(exact_tile(y.data(), 2, 1) == side);
    CHECK(exact_tile(z.data(), 2, 1) == main);
  }
  const std::vector<float> x = {0x1.000002p0F, 0x1.000002p-24F, 0x1.000002p0F, 0};
  CHECK(exact_tile(x.data(), 2, 1) == side);
}

TEST_CASE("exact tile: elements that are no finite numbers come first", "[fast]") {
  const std::vector<float> x = {INFINITY, 1e30F, 1e30F, 1e30F,  //
                                1e30F,    NAN,   0,     0,      //
                                0,        0,     0,     -INFINITY, 0, 0, 1, 0};
  const TileMask mask = exact_tile(x.data(), 4, 1);
  CHECK(mask == mask_of({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0}, 4));
  // More of them than a row may keep: as many as fit, then the finite ones.
  const std::vector<float> row = {NAN, NAN, NAN, NAN, 0, 0, 0, 9, 0, 0, 8, 0, 0, 0, 0, 0};
  const TileMask kept = exact_tile(row.data(), 4, 2);
  CHECK(kept.rows[0] == 0b0011);
  CHECK(kept(1, 3));
  CHECK(kept(2, 2));
}

TEST_CASE("exact tile: exactly N in every row and column of any tile", "[fast]") {
  const std::vector<float> x = testing::mixed(32 * 32 * 8, true);
  for (int m = 1; m <= kMostTile; ++m)
    for (const int n : {1, (m + 1) / 2, m}) {
      CHECK(keeps_exactly(exact_tile(x.data() + 64 * m, m, n), n));
    }
}

}  // namespace
}  // namespace numemu::policies::transposable_exact_test
