// Sequential N:M: against exact sums of all windows, ties, and what is not finite.
#include <set>

#include "tests/catch.hpp"
#include "tests/policies/mask/group_cases.hpp"

namespace sequential_groups_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

/// Of all windows of neighbours the lightest, by integers; of equal ones that with the largest bit
/// string of kept positions.
std::uint32_t lightest_of_all(const unit::Sparsity& pattern, const std::vector<float>& x) {
  std::uint32_t best = 0;
  std::int64_t least = -1;
  for (int start = 0; start + pattern.group - pattern.kept <= pattern.group; ++start) {
    std::int64_t sum = 0;
    std::uint32_t kept = 0;
    for (int i = 0; i < pattern.group; ++i) {
      const bool inside = i >= start && i < start + pattern.group - pattern.kept;
      if (inside) {
        sum += std::abs(static_cast<std::int64_t>(x[static_cast<std::size_t>(i)]));
      } else {
        kept |= 1U << i;
      }
    }
    const bool earlier = bit_string(kept, pattern.group) > bit_string(best, pattern.group);
    if (least < 0 || sum < least || (sum == least && earlier)) {
      best = kept;
      least = sum;
    }
  }
  return best;
}

MaskPolicy sequential(int kept, int group) {
  MaskPolicy policy;
  policy.rule = &find_mask_rule("sequential");
  policy.pattern = {{kept, group}, false};
  return policy;
}

std::uint32_t mask(int kept, const std::vector<float>& x) {
  const MaskPolicy policy = sequential(kept, static_cast<int>(x.size()));
  std::vector<std::uint8_t> keep(x.size());
  policy.rule->prune(policy, {}, {.x = x.data(), .keep = keep.data(), .count = 1});
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < keep.size(); ++i) bits |= std::uint32_t{keep[i]} << i;
  return bits;
}

}  // namespace

TEST_CASE("sequential groups: the lightest window of every small group", "[fast]") {
  const std::vector<float> set = {0.0F, -0.0F, 1.0F, -1.0F, 2.0F, -3.0F};
  for (int group = 1; group <= 5; ++group) {
    for (int kept = 1; kept <= group; ++kept) {
      for (std::int64_t i = 0; i < power(static_cast<std::int64_t>(set.size()), group); ++i) {
        const std::vector<float> x = group_of(set, group, i);
        if (mask(kept, x) == lightest_of_all({kept, group}, x)) continue;
        CAPTURE(kept, group, x);
        REQUIRE(mask(kept, x) == lightest_of_all({kept, group}, x));
      }
    }
  }
}

TEST_CASE("sequential groups: N:M has N + 1 masks", "[fast]") {
  std::mt19937 generator(4);
  for (const unit::Sparsity pattern : {unit::Sparsity{2, 4}, {4, 8}, {3, 4}, {8, 16}}) {
    std::set<std::uint32_t> seen;
    std::vector<float> x(static_cast<std::size_t>(pattern.group));
    for (int round = 0; round < 2000; ++round) {
      for (float& v : x) v = static_cast<float>(generator() % 1000) - 500;
      seen.insert(mask(pattern.kept, x));
      REQUIRE(mask(pattern.kept, x) == lightest_of_all(pattern, x));
    }
    CHECK(seen.size() == static_cast<std::size_t>(pattern.kept) + 1);
  }
}

TEST_CASE("sequential groups: equal windows keep the earliest positions", "[fast]") {
  CHECK(mask(2, {1, 1, 1, 1}) == 0b0011U);
  CHECK(mask(2, {0, 0, 0, 0}) == 0b0011U);
  CHECK(mask(2, {1, -1, 3, 2}) == 0b1100U);
  CHECK(mask(2, {5, 1, -1, 5}) == 0b1001U);
  CHECK(mask(4, {1, 2, 3, 4}) == 0b1111U);
}

TEST_CASE("sequential groups: infinities outweigh what is finite, NaN outweighs them", "[fast]") {
  CHECK(mask(2, {3e38F, 3e38F, kInfinity, 0}) == 0b1100U);
  CHECK(mask(2, {-kInfinity, -kInfinity, kNaN, 0}) == 0b1100U);
  CHECK(mask(2, {0, kInfinity, kInfinity, -kInfinity}) == 0b1100U);
  CHECK(mask(2, {kNaN, kNaN, kNaN, kInfinity}) == 0b0011U);
  // Beside an infinity nothing finite counts: a tie.
  CHECK(mask(1, {kInfinity, 1, 2, kInfinity}) == 0b0001U);
}

TEST_CASE("sequential groups: subnormal numbers count", "[fast]") {
  CHECK(mask(1, {0x1p-149F, 0x1p-148F}) == 0b10U);
}

TEST_CASE("sequential groups: what is kept and pruned is written bit by bit", "[fast]") {
  const std::vector<float> x = {-0.0F, -0.0F, 0.0F, -0.0F, -5.0F, kNaN, 1.0F, -2.0F};
  const MaskPolicy policy = sequential(2, 4);
  const Prune prune = [&](const MaskRun& run) { policy.rule->prune(policy, {}, run); };
  const Outcome want{{-0.0F, -0.0F, 0.0F, 0.0F, -5.0F, kNaN, 0.0F, 0.0F}, {1, 1, 0, 0, 1, 1, 0, 0}};
  CHECK(pruned(prune, x, 2) == want);
  CHECK(same_asked_apart(prune, x, 2, want));
}

}  // namespace sequential_groups_test
