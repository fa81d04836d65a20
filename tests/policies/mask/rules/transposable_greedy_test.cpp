// The greedy masks: published vectors, their guarantees, what filling does, their means.
#include "policies/mask/rules/transposable_greedy.hpp"

#include <cmath>
#include <vector>

#include "policies/mask/rules/transposable.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/tile_oracles.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace numemu::policies::transposable_greedy_test {
namespace {

TileMask mask_of(const std::vector<std::uint8_t>& keep, int size) {
  return tile_mask(keep.data(), size);
}

const std::vector<float> kFirst = {12, 2, 10, 7, 6, 16, 5, 4, 13, 14, 11, 9, 1, 8, 3, 15};
const std::vector<float> kSecond = {3, 11, 16, 8, 5, 9, 7, 14, 1, 12, 13, 15, 2, 6, 10, 4};

std::int64_t sum_of(const TileMask& mask, const std::vector<float>& x) {
  const std::vector<std::int64_t> costs(x.begin(), x.end());
  return kept_sum(mask, costs.data());
}

TEST_CASE("greedy tile: vectors of the specification", "[fast]") {
  const TileMask k = keep_heaviest(kFirst.data(), 4, 2), p = prune_lightest(kFirst.data(), 4, 2);
  CHECK(k == mask_of({1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 1}, 4));
  CHECK(p == mask_of({1, 0, 1, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1}, 4));
  CHECK(sum_of(k, kFirst) == 85);
  CHECK(sum_of(p, kFirst) == 80);
  const TileMask k2 = keep_heaviest(kSecond.data(), 4, 2),
                 p2 = prune_lightest(kSecond.data(), 4, 2);
  CHECK(k2 == mask_of({0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0}, 4));
  CHECK(p2 == mask_of({0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0}, 4));
  CHECK(sum_of(k2, kSecond) == 80);
  CHECK(sum_of(p2, kSecond) == 69);
  const std::vector<float> adversarial = {1.125F, 1, 1, 0};
  CHECK(keep_heaviest(adversarial.data(), 2, 1) == mask_of({1, 0, 0, 1}, 2));
}

TEST_CASE("greedy tile: equal elements, the earlier is the heavier", "[fast]") {
  const std::vector<float> equal(16, -3);
  const TileMask corner = mask_of({1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1}, 4);
  CHECK(keep_heaviest(equal.data(), 4, 2) == corner);
  // From the last element backwards: all of rows 3 and 2, because columns lack, then half of the
  // others, because rows do.
  CHECK(prune_lightest(equal.data(), 4, 2) ==
        mask_of({1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 4));
  const std::vector<float> odd = {NAN, INFINITY, -INFINITY, 1};  // alike, so by position
  CHECK(keep_heaviest(odd.data(), 2, 1) == mask_of({1, 0, 0, 1}, 2));
  CHECK(prune_lightest(odd.data(), 2, 1) == mask_of({1, 0, 0, 0}, 2));
}

TEST_CASE("greedy tile: filling gives missing elements without loss", "[fast]") {
  // Vector 1: row 3 and column 3 miss one, and (3, 3) is kept. The best exchange gives (3, 1) and
  // (2, 3) for (2, 1): 8 + 9 - 14.
  const std::vector<std::int64_t> costs(kFirst.begin(), kFirst.end());
  const TileMask filled = keep_heaviest_filled(kFirst.data(), 4, 2);
  CHECK(keeps_exactly(filled, 2));
  CHECK(filled == mask_of({1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1}, 4));
  CHECK(sum_of(filled, kFirst) == 88);
  // Where every exchange loses nothing happens.
  const std::vector<float> losing = {0, 0, 0, 0, 9, 9, 0, 9, 9};
  const TileMask four = keep_heaviest(losing.data(), 3, 2);
  CHECK(four == mask_of({1, 0, 0, 0, 1, 1, 0, 1, 1}, 3));
  CHECK(keep_heaviest_filled(losing.data(), 3, 2) == four);
  // An empty mask is filled directly.
  const TileMask full = fill_tile(TileMask{4}, costs.data(), 2);
  CHECK(keeps_exactly(full, 2));
}

struct Means {
  double p_pruned = 0, k_kept = 0, p_count = 0,
         k_count = 0;  // ratios to the optimum, kept elements
  double p_worst = 0, k_worst = 2;
  double p_variance = 0, k_variance = 0;
};

// Guarantees of every tile of 52-bit costs, and means.
Means check_tiles(const std::string& law, int size, int kept, int tiles, std::uint32_t tensor) {
  const std::vector<float> x = testing::sample(law, std::int64_t{tiles} * size * size, tensor);
  Means means;
  int broken = 0;
  std::vector<Wide> costs(static_cast<std::size_t>(size * size));
  double p_squares = 0, k_squares = 0;
  for (int t = 0; t < tiles; ++t) {
    const float* tile = x.data() + std::ptrdiff_t{t} * size * size;
    const TileUnit unit = tile_unit(tile, size * size);
    tile_costs(unit, tile, size * size, costs.data());
    Wide total = 0;
    for (const Wide cost : costs) total += cost;
    const TileMask p = prune_lightest(tile, size, kept), k = keep_heaviest(tile, size, kept);
    const TileMask filled = keep_heaviest_filled(tile, size, kept);
    const Wide best = kept_sum(exact_tile(tile, size, kept), costs.data());
    const Wide of_p = total - kept_sum(p, costs.data()), of_k = kept_sum(k, costs.data());
    broken += !keeps_at_most(p, kept) || !keeps_at_most(k, kept) || !keeps_at_most(filled, kept);
    broken += of_p > 2 * (total - best) || 2 * of_k < best;
    broken += kept_sum(filled, costs.data()) < of_k || kept_count(filled) < kept_count(k);
    const double p_ratio = static_cast<double>(of_p) / static_cast<double>(total - best);
    const double k_ratio = static_cast<double>(of_k) / static_cast<double>(best);
    means.p_pruned += p_ratio / tiles;
    means.k_kept += k_ratio / tiles;
    p_squares += p_ratio * p_ratio / tiles;
    k_squares += k_ratio * k_ratio / tiles;
    means.p_count += double(kept_count(p)) / tiles;
    means.k_count += double(kept_count(k)) / tiles;
    means.p_worst = std::max(means.p_worst, p_ratio);
    means.k_worst = std::min(means.k_worst, k_ratio);
  }
  means.p_variance = (p_squares - means.p_pruned * means.p_pruned) / tiles;
  means.k_variance = (k_squares - means.k_kept * means.k_kept) / tiles;
  INFO(law << " " << kept << ":" << size << " P " << means.p_pruned << " K " << means.k_kept);
  CHECK(broken == 0);
  return means;
}

TEST_CASE("greedy tile: guarantees and published means of 4 x 4", "[fast]") {
  const Means m = check_tiles("normal", 4, 2, 10'000, 21);
  // As printed, to half of the last digit.
  CHECK(std::fabs(m.p_pruned - 1.24) < 0.005 + 4 * std::sqrt(m.p_variance));
  CHECK(std::fabs(m.k_kept - 0.985) < 0.0005 + 4 * std::sqrt(m.k_variance));
  // Counts lie between 4 and 8, so their deviation is at most 2.
  CHECK(std::fabs(m.p_count - 5.94) < 0.005 + 4 * 2 / std::sqrt(10'000.0));
  CHECK(std::fabs(m.k_count - 7.84) < 0.005 + 4 * 2 / std::sqrt(10'000.0));
}

TEST_CASE("greedy tile: guarantees and published means of 8 x 8", "[fast]") {
  const Means m = check_tiles("normal", 8, 4, 10'000, 22);
  CHECK(std::fabs(m.p_pruned - 1.22) < 0.005 + 4 * std::sqrt(m.p_variance));
  CHECK(std::fabs(m.k_kept - 0.987) < 0.0005 + 4 * std::sqrt(m.k_variance));
}

TEST_CASE("greedy tile: guarantees at other sizes and laws", "[fast]") {
  check_tiles("lognormal:2", 4, 1, 1000, 23);
  check_tiles("laplace", 4, 3, 1000, 24);
  check_tiles("uniform", 3, 2, 1000, 25);
  check_tiles("normal", 2, 1, 1000, 26);
  check_tiles("normal", 16, 8, 100, 27);
  check_tiles("lognormal:1", 32, 8, 10, 28);
}

TEST_CASE("greedy tile: guarantees on a million tiles", "[slow]") {
  for (std::uint32_t part = 0; part < 10; ++part) check_tiles("normal", 4, 2, 80'000, 30 + part);
  check_tiles("lognormal:2", 4, 2, 100'000, 50);
  check_tiles("uniform", 4, 2, 100'000, 51);
  check_tiles("normal", 8, 4, 80'000, 52);
  check_tiles("lognormal:2", 8, 4, 20'000, 53);
}

TEST_CASE("greedy tile: the bound of pruning the lightest is nearly reached", "[fast]") {
  // 1:2 with (1 + e, 1, 1, 0): pruning the lightest keeps (0, 0) alone and prunes 2 of 1 + e.
  const std::vector<float> x = {1.125F, 1, 1, 0};
  const TileMask p = prune_lightest(x.data(), 2, 1);
  CHECK(p == mask_of({1, 0, 0, 0}, 2));
}

TEST_CASE("greedy tile: any numbers leave masks that fit", "[fast]") {
  const std::vector<float> x = testing::mixed(32 * 32 * 4, true, 5);
  for (int m = 1; m <= kMostTile; ++m)
    for (const int n : {1, (m + 1) / 2, m}) {
      const float* tile = x.data() + 32 * m;
      CHECK(keeps_at_most(keep_heaviest(tile, m, n), n));
      CHECK(keeps_at_most(prune_lightest(tile, m, n), n));
      CHECK(keeps_at_most(keep_heaviest_filled(tile, m, n), n));
    }
}

}  // namespace
}  // namespace numemu::policies::transposable_greedy_test
