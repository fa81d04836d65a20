// Random N:M: every mask has its number, all are equally likely, and draws are where the contract
// puts them.
#include <bit>
#include <cmath>

#include "policies/mask/rules/random.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/group_cases.hpp"

namespace random_groups_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

constexpr RandomSource kRandom{0x0123456789abcdef, Stream::mask, 5, 0};

std::int64_t masks(int kept, int group) {
  unit::Pattern pattern;
  pattern.kept = kept;
  pattern.group = group;
  return unit::count_masks(pattern);
}

std::uint32_t kept_bits(const Outcome& out, int group, std::int64_t g) {
  std::uint32_t kept = 0;
  for (int i = 0; i < group; ++i)
    kept |= std::uint32_t{out.keep[static_cast<std::size_t>(g * group + i)]} << i;
  return kept;
}

}  // namespace

TEST_CASE("random groups: numbers run through all masks in the order of bit strings", "[fast]") {
  for (int group = 1; group <= unit::kMostGroup; ++group) {
    for (int kept = 1; kept <= group; ++kept) {
      CAPTURE(kept, group);
      std::uint32_t before = 1U << group;  // above every string
      bool right = true;
      for (std::int64_t i = 0; i < masks(kept, group); ++i) {
        const std::uint32_t mask = mask_of_index({kept, group}, static_cast<std::uint32_t>(i));
        right = right && std::popcount(mask) == kept && bit_string(mask, group) < before;
        before = bit_string(mask, group);
      }
      REQUIRE(right);  // so many different ones are all of them
    }
  }
  CHECK(mask_of_index({2, 4}, 0) == 0b0011U);
  CHECK(mask_of_index({2, 4}, 1) == 0b0101U);
  CHECK(mask_of_index({2, 4}, 5) == 0b1100U);
}

TEST_CASE("random groups: group g reads piece g mod 4 of the block at counter g / 4", "[fast]") {
  const std::vector<float> x(12, 1.0F);
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{0x1'2345'6789'0002}}) {
    for (const std::uint16_t draw : {0, 3}) {
      RandomSource random = kRandom;
      random.draw = draw;
      const Outcome got = pruned(
          [&](const MaskRun& run) {
            keep_random({2, 4}, random, run);
          },
          x, 3, first);
      for (std::uint64_t g = 0; g < 3; ++g) {
        const std::uint64_t i = (first + g) / 4;
        const PhiloxBlock block = philox(
            kRandom.seed,
            {static_cast<std::uint32_t>(i),
             static_cast<std::uint32_t>(i >> 32 & 0xffff) | static_cast<std::uint32_t>(draw) << 16,
             kRandom.tensor, 2});
        const std::uint64_t index = std::uint64_t{block[(first + g) % 4]} * 6 >> 32;
        // In the order of bit strings: 1100, 1010, 1001, 0110, 0101, 0011, first position left.
        const std::uint32_t order[] = {0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100};
        CAPTURE(first, draw, g);
        CHECK(kept_bits(got, 4, static_cast<std::int64_t>(g)) == order[index]);
      }
    }
  }
}

TEST_CASE("random groups: batches equal the reference, values as they are", "[fast]") {
  for (const unit::Sparsity pattern : {unit::Sparsity{1, 1}, {1, 2}, {2, 4}, {3, 5}, {8, 16}}) {
    for (const std::int64_t groups : {0, 1, 255, 256, 1001}) {
      const std::vector<float> x = mixed_elements(groups * pattern.group, 3);
      const auto reference = [&](const MaskRun& run) {
        keep_random_reference(pattern, kRandom, run);
      };
      const Prune fast = [&](const MaskRun& run) { keep_random(pattern, kRandom, run); };
      const Outcome want = pruned(reference, x, groups);
      REQUIRE(pruned(fast, x, groups) == want);
      REQUIRE(pruned(fast, x, groups, 77) == pruned(reference, x, groups, 77));
      REQUIRE(same_asked_apart(fast, x, groups, want));
      bool right = true;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float kept = want.keep[i] != 0 ? x[i] : 0.0F;
        right = right && std::memcmp(&kept, &want.y[i], sizeof kept) == 0;
      }
      REQUIRE(right);
    }
  }
}

TEST_CASE("random groups: all masks are equally likely", "[fast]") {
  constexpr std::int64_t kGroups = 200'000;
  for (const unit::Sparsity pattern : {unit::Sparsity{1, 2}, {2, 4}, {1, 4}, {4, 8}, {8, 16}}) {
    const std::vector<float> x(static_cast<std::size_t>(kGroups * pattern.group));
    const Outcome got =
        pruned([&](const MaskRun& run) { keep_random(pattern, kRandom, run); }, x, kGroups);
    std::vector<std::int64_t> seen(std::size_t{1} << pattern.group);
    for (std::int64_t g = 0; g < kGroups; ++g) ++seen[kept_bits(got, pattern.group, g)];
    const auto outcomes = static_cast<double>(masks(pattern.kept, pattern.group));
    const double expected = kGroups / outcomes, degrees = outcomes - 1;
    double statistic = 0;
    for (std::uint32_t mask = 0; mask < seen.size(); ++mask) {
      const auto count = static_cast<double>(seen[mask]);
      if (std::popcount(mask) != pattern.kept) {
        REQUIRE(count == 0);
      } else {
        statistic += (count - expected) * (count - expected) / expected;
      }
    }
    // Wilson and Hilferty: the cube root of chi-square over its degrees is nearly normal.
    const double shift = 2 / (9 * degrees);
    const double z = (std::cbrt(statistic / degrees) - (1 - shift)) / std::sqrt(shift);
    CAPTURE(pattern.kept, pattern.group, statistic, degrees);
    CHECK(std::abs(z) < 4);
  }
}

}  // namespace random_groups_test
