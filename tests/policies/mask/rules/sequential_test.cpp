// Mask rule sequential: its row, its error in closed form, and the patterns it refuses.
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/group_cases.hpp"

namespace sequential_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("mask sequential: prunes neighbours, and the error is what it prunes", "[fast]") {
  const MaskPolicy policy = parse_mask("sequential(2:4)");
  const std::vector<float> x = {4, 1, -3, 0.5F, 2, 2, -1, 8};
  const Outcome got =
      pruned([&](const MaskRun& run) { policy.rule->prune(policy, {}, run); }, x, 2);
  // 3.5 is lighter than 4 and 5, 3 than 4 and 9.
  CHECK(got.y == std::vector<float>{4, 1, 0, 0, 2, 0, 0, 8});
  CHECK(policy.rule->error(policy, x.data(), 4, 0) == 9.25);
  CHECK(policy.rule->error(policy, x.data() + 4, 4, 0) == 5);
}

TEST_CASE("mask sequential: draws nothing, is biased, takes repair and refresh", "[fast]") {
  const MaskPolicy policy = parse_mask("sequential(4:8,repair=adaprune,refresh=0)");
  CHECK(policy.rule->span == MaskSpan::group);
  CHECK_FALSE(policy.rule->random);
  CHECK_FALSE(policy.rule->unbiased);
  CHECK(policy.repair == Repair::adaprune);
  CHECK(policy.refresh == 0);
  CHECK_THROWS_AS(parse_mask("sequential(4:8.pairwise)"), Error);
}

}  // namespace sequential_test
