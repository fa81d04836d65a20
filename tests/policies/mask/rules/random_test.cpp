// Mask rule random: its draws are the source's, and its error is expected over all masks.
#include "policies/mask/rules/random.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "policies/mask/kept_bits.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/group_cases.hpp"

namespace random_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("mask random: the source's draws decide, whatever the elements", "[fast]") {
  constexpr std::int64_t kGroups = 500;
  const MaskPolicy policy = parse_mask("random(2:4)");
  const RandomSource random{3, Stream::mask, 11, 0};
  const auto by = [&](const RandomSource& source, const std::vector<float>& x) {
    return pruned([&](const MaskRun& run) { policy.rule->prune(policy, source, run); }, x, kGroups);
  };
  const std::vector<float> x = mixed_elements(4 * kGroups, 6), ones(x.size(), 1.0F);
  const Outcome got = by(random, x);
  CHECK(got == pruned(
                   [&](const MaskRun& run) {
                     keep_random_reference({2, 4}, random, run);
                   },
                   x, kGroups));
  CHECK(got.keep == by(random, ones).keep);
  RandomSource other = random;
  other.draw = 1;
  CHECK(got.keep != by(other, x).keep);
  other = random;
  other.tensor = 12;
  CHECK(got.keep != by(other, x).keep);
}

TEST_CASE("mask random: the error is the mean over all masks", "[fast]") {
  std::vector<float> x = {3, -1, 0.25F, 7, 1e-3F, 2, -5, 0.5F};
  for (const char* text :
       {"random(1:2)", "random(2:4)", "random(3:4)", "random(4:8)", "random(8:8)"}) {
    const MaskPolicy policy = parse_mask(text);
    const int group = policy.pattern.group;
    const auto count = static_cast<std::uint32_t>(unit::count_masks(policy.pattern));
    double sum = 0;
    for (std::uint32_t i = 0; i < count; ++i)
      sum += pruned_squares(x.data(), group, mask_of_index(policy.pattern, i));
    const double error = policy.rule->error(policy, x.data(), group, 0);
    // The sum of at most 70 terms of at most 8 squares each, in float64: 80 roundings of one sign.
    constexpr double kRoundings = 80 * 0x1p-53;
    CAPTURE(text);
    CHECK(std::abs(error - sum / count) <= kRoundings * error);
  }
}

TEST_CASE("mask random: draws, is biased, refuses pairs", "[fast]") {
  const MaskRule& rule = find_mask_rule("random");
  CHECK(rule.span == MaskSpan::group);
  CHECK(rule.random);
  CHECK_FALSE(rule.unbiased);
  CHECK_THROWS_AS(parse_mask("random(4:8.pairwise)"), Error);
  CHECK_THROWS_AS(parse_mask("random(2:4,refresh=40)"), Error);
}

}  // namespace random_test
