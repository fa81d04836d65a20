// Greedy N:M: against all masks of a group, and the vector loops against the reference.
#include <hwy/targets.h>

#include <algorithm>
#include <bit>

#include "policies/mask/kept_bits.hpp"
#include "policies/mask/rules/greedy.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/group_cases.hpp"

namespace greedy_groups_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

/// The magnitudes that a mask keeps, largest first: the better mask has the larger list.
std::vector<std::uint32_t> kept_magnitudes(const float* x, int group, std::uint32_t kept) {
  std::vector<std::uint32_t> list;
  for (int i = 0; i < group; ++i) {
    if ((kept >> i & 1U) != 0) list.push_back(magnitude_bits(x[i]));
  }
  std::sort(list.rbegin(), list.rend());
  return list;
}

std::uint32_t best_of_all(const unit::Sparsity& pattern, const float* x) {
  std::uint32_t best = 0;
  std::vector<std::uint32_t> most;
  for (std::uint32_t mask = 0; mask < 1U << pattern.group; ++mask) {
    if (std::popcount(mask) != pattern.kept) continue;
    std::vector<std::uint32_t> list = kept_magnitudes(x, pattern.group, mask);
    const bool earlier = bit_string(mask, pattern.group) > bit_string(best, pattern.group);
    if (list > most || (list == most && earlier)) {
      best = mask;
      most = std::move(list);
    }
  }
  return best;
}

void compare(const unit::Sparsity& pattern, std::int64_t groups, std::uint32_t seed) {
  const std::vector<float> x = mixed_elements(groups * pattern.group, seed);
  const Outcome want =
      pruned([&](const MaskRun& run) { keep_largest_reference(pattern, run); }, x, groups);
  const Prune fast = [&](const MaskRun& run) { keep_largest(pattern, run); };
  CAPTURE(pattern.kept, pattern.group, groups);
  REQUIRE(pruned(fast, x, groups) == want);
  REQUIRE(same_asked_apart(fast, x, groups, want));
}

}  // namespace

TEST_CASE("greedy groups: magnitudes order as bits, infinity and NaN above all", "[fast]") {
  const float ascending[] = {0.0F, 0x1p-149F, 0x1p-126F, 1.0F, 3.4e38F, kInfinity, kNaN};
  for (std::size_t i = 1; i < std::size(ascending); ++i)
    CHECK(magnitude_bits(-ascending[i - 1]) < magnitude_bits(ascending[i]));
  CHECK(magnitude_bits(-0.0F) == magnitude_bits(0.0F));
}

TEST_CASE("greedy groups: the best of all masks for every small group", "[fast]") {
  const std::vector<float> set = {0.0F, -0.0F, 1.0F, -1.0F, 2.0F, -kInfinity, kNaN};
  for (int group = 1; group <= 4; ++group) {
    for (int kept = 1; kept <= group; ++kept) {
      const unit::Sparsity pattern{kept, group};
      for (std::int64_t i = 0; i < power(static_cast<std::int64_t>(set.size()), group); ++i) {
        const std::vector<float> x = group_of(set, group, i);
        CAPTURE(kept, group, x);
        REQUIRE(largest_of_group(pattern, x.data()) == best_of_all(pattern, x.data()));
      }
    }
  }
}

TEST_CASE("greedy groups: the best of all masks for random groups of eight", "[fast]") {
  constexpr int kGroups = 100;
  const std::vector<float> x = mixed_elements(8 * kGroups, 5);
  for (int kept = 1; kept <= 8; ++kept) {
    for (int g = 0; g < kGroups; ++g) {
      const float* group = x.data() + 8 * g;
      REQUIRE(largest_of_group({kept, 8}, group) == best_of_all({kept, 8}, group));
    }
  }
}

TEST_CASE("greedy groups: what is kept and pruned is written bit by bit", "[fast]") {
  const std::vector<float> x = {-0.0F, -0.0F, -0.0F, 0.0F, 1.0F, -kInfinity, kNaN, -2.0F};
  const Outcome got = pruned([](const MaskRun& run) { keep_largest({2, 4}, run); }, x, 2);
  CHECK(got == Outcome{{-0.0F, -0.0F, 0.0F, 0.0F, 0.0F, -kInfinity, kNaN, 0.0F},
                       {1, 1, 0, 0, 0, 1, 1, 0}});
}

TEST_CASE("greedy groups: ties keep the first, the published example", "[fast]") {
  // sparsity.md, 2f, vector 5.
  const std::vector<float> x = {4, 1, -3, 0.5F, 2, 2, -1, 8};
  const Outcome got = pruned([](const MaskRun& run) { keep_largest({2, 4}, run); }, x, 2);
  CHECK(got == Outcome{{4, 0, -3, 0, 2, 0, 0, 8}, {1, 0, 1, 0, 1, 0, 0, 1}});
}

TEST_CASE("greedy groups: every pattern and instruction set equals the reference", "[fast]") {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    INFO(hwy::TargetName(target));
    std::uint32_t seed = 1;
    for (int group = 1; group <= unit::kMostGroup; ++group) {
      for (int kept = 1; kept <= group; ++kept) {
        for (const int groups : {0, 1, 3, 63, 150}) compare({kept, group}, groups, seed++);
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST_CASE("greedy groups: many groups equal the reference", "[fast]") {
  constexpr std::int64_t kGroups = 100'000;
  std::uint32_t seed = 900;
  for (const unit::Sparsity pattern : {unit::Sparsity{1, 2}, {2, 4}, {4, 8}, {8, 16}})
    compare(pattern, kGroups, seed++);
}

}  // namespace greedy_groups_test
