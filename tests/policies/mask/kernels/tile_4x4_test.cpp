// The vectors' masks of 4 x 4 tiles against 90 integer sums, and these against all masks.
#include "policies/mask/kernels/tile_4x4.hpp"

#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "policies/mask/rules/transposable.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/tile_oracles.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace numemu::policies::tile_4x4_test {
namespace {

TileMask mask_of(Mask4x4 bits) {
  TileMask mask{4};
  for (int e = 0; e < 16; ++e)
    if ((bits >> (15 - e) & 1) != 0) mask.rows[static_cast<std::size_t>(e / 4)] |= 1U << e % 4;
  return mask;
}

TEST_CASE("4x4: the table holds all 90 masks in order", "[fast]") {
  const std::vector<TileMask> masks = testing::all_masks(4, 2);
  REQUIRE(masks.size() == tile_4x4::kMasks.size());
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const tile_4x4::MaskAt& row = tile_4x4::kMasks[i];
    CHECK(mask_of(row.mask) == masks[i]);
    int number = 0;
    for (int e = 0; e < 16; ++e)
      if ((row.mask >> (15 - e) & 1) != 0) number += tile_4x4::place(e);
    CHECK(number - tile_4x4::kFirstPlace == row.place);
    if (i > 0) CHECK(row.place < tile_4x4::kMasks[i - 1].place);
  }
}

TEST_CASE("4x4: the reference gives what the exact solver gives", "[fast]") {
  const std::vector<float> x = testing::mixed(16 * 4000, true);
  int wrong = 0;
  for (std::size_t t = 0; t < x.size(); t += 16)
    wrong += mask_of(best_4x4(x.data() + t)) != exact_tile(x.data() + t, 4, 2);
  CHECK(wrong == 0);
}

// Tiles whose masks differ from the reference's, and elements whose y or keep does, on every target
// of this machine.
void check_same(const std::vector<float>& x) {
  const auto count = static_cast<std::int64_t>(x.size() / 16);
  std::vector<std::uint8_t> expected(x.size());
  for (std::size_t t = 0; t < x.size(); t += 16) {
    const Mask4x4 best = best_4x4(x.data() + t);
    for (std::size_t e = 0; e < 16; ++e) expected[t + e] = best >> (15 - e) & 1;
  }
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    INFO(hwy::TargetName(target));
    std::vector<std::uint8_t> keep(x.size(), 7), alone(x.size(), 7);
    std::vector<float> y(x.size(), 7);
    keep_4x4(x.data(), count, y.data(), keep.data());
    CHECK(keep == expected);
    std::size_t different = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      different += std::bit_cast<std::uint32_t>(y[i]) !=
                   (expected[i] != 0 ? std::bit_cast<std::uint32_t>(x[i]) : 0U);
    CHECK(different == 0);
    keep_4x4(x.data(), count, nullptr, alone.data());
    CHECK(alone == expected);
    std::vector<float> in_place = x;
    keep_4x4(in_place.data(), count, in_place.data(), nullptr);
    CHECK(std::equal(y.begin(), y.end(), in_place.begin(), [](float a, float b) {
      return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    }));
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST_CASE("4x4: vectors as the reference, on numbers of every kind", "[fast]") {
  check_same(testing::sample("normal", 16 * 4000));
  check_same(testing::sample("lognormal:2", 16 * 1000));
  check_same(testing::mixed(16 * 2000, false));
  check_same(testing::mixed(16 * 2000, true, 4));
}

TEST_CASE("4x4: counts that fill no vector, and none", "[fast]") {
  const std::vector<float> x = testing::sample("laplace", 16 * 40);
  for (std::size_t tiles = 1; tiles < 40; ++tiles)
    check_same({x.begin(), x.begin() + static_cast<std::ptrdiff_t>(16 * tiles)});
  std::vector<std::uint8_t> keep(16, 9);
  keep_4x4(x.data(), 0, nullptr, keep.data());
  CHECK(keep == std::vector<std::uint8_t>(16, 9));
}

TEST_CASE("4x4: all tiles of zeros and ones against all masks", "[fast]") {
  std::vector<float> x(std::size_t{16} << 16);
  for (std::uint32_t tile = 0; tile < 1U << 16; ++tile)
    for (std::uint32_t e = 0; e < 16; ++e)
      x[16 * tile + e] = (tile >> e & 1U) != 0 ? 0x1p-140F : -0.0F;
  std::vector<std::uint8_t> keep(x.size());
  keep_4x4(x.data(), 1 << 16, nullptr, keep.data());
  int wrong = 0;
  for (std::uint32_t tile = 0; tile < 1U << 16; ++tile) {
    int most = 0;
    Mask4x4 best = 0;
    for (const tile_4x4::MaskAt& m : tile_4x4::kMasks) {
      int sum = 0;
      for (std::uint32_t e = 0; e < 16; ++e)
        sum += static_cast<int>((m.mask >> (15 - e) & 1U) & (tile >> e & 1U));
      if (sum > most || (sum == most && m.mask > best)) {
        most = sum;
        best = m.mask;
      }
    }
    wrong += tile_mask(keep.data() + std::size_t{16} * tile, 4) != mask_of(best);
  }
  CHECK(wrong == 0);
}

TEST_CASE("4x4: sums nearer than the unit of the vectors", "[fast]") {
  // Every mask has about the same sum: a constant, a difference of the last place of some, and of
  // places that float32 sums lose.
  const RandomSource random{.seed = 8, .stream = Stream::vectors, .tensor = 2};
  std::vector<float> x(16 * 3000);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint32_t r = random.bits(i, 32);
    const int tile = static_cast<int>(i / 16);
    x[i] = 1 + static_cast<float>(r % 4) * (tile % 2 == 0 ? 0x1p-23F : 0x1p-21F);
    if (tile % 3 == 2 && r >> 8 % 4 == 0) x[i] = static_cast<float>(r >> 10) * 0x1p-60F;
  }
  check_same(x);
  // Rank one plus rank one: all 90 masks tie, whatever is rounded on the way.
  for (std::size_t t = 0; t < x.size(); t += 16)
    for (std::size_t e = 0; e < 16; ++e)
      x[t + e] =
          static_cast<float>((random.bits(t + e / 4, 22) + random.bits(t + 4 + e % 4, 22)) / 2 * 2);
  check_same(x);
}

TEST_CASE("4x4: magnitudes of many binades, as gradients have", "[fast]") {
  const RandomSource random{.seed = 9, .stream = Stream::vectors, .tensor = 4};
  const auto number = [&](std::size_t i, int exponent) {
    const auto fraction = static_cast<float>(random.bits(2 * i, 24)) * 0x1p-24F;
    return std::ldexp(1 + fraction, exponent);
  };
  std::vector<float> x(16 * 4000);
  for (const int binades : {10, 40, 70, 250}) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = number(i, static_cast<int>(random.bits(2 * i + 1, 32) % binades) - binades / 2);
    check_same(x);
  }
  // Around what the fine sums and the reference's integers hold below the largest, a quarter of
  // them zero; in every other tile infinities and NaN as well.
  constexpr int kBelow[] = {0,  0,  0,  20,  36,  39,  63,  78,  79,  80,
                            81, 82, 95, 105, 106, 107, 115, 116, 117, 126};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint32_t r = random.bits(2 * i + 1, 32);
    const std::size_t tile = i / 16;
    const int top = static_cast<int>(tile % 5) * 50 - 90;
    const int binade = std::max(top - kBelow[r % std::size(kBelow)], -149);
    x[i] = r >> 16 & 3 ? number(tile % 3 == 0 ? tile : i, binade) : 0;
    if (tile % 2 == 1 && (r >> 20) % 10 == 0) x[i] = (r >> 24 & 1) != 0 ? HUGE_VALF : NAN;
  }
  check_same(x);
}

TEST_CASE("4x4: vectors as the reference on a million tiles", "[slow]") {
  for (const char* law : {"normal", "laplace", "uniform", "lognormal:1", "lognormal:6"})
    check_same(testing::sample(law, 16 * 200'000, 9));
  check_same(testing::mixed(16 * 200'000, true, 10));
}

}  // namespace
}  // namespace numemu::policies::tile_4x4_test
