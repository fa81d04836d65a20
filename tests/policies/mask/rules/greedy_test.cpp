// Mask rule greedy: its row, its error in closed form, and the patterns it refuses.
#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/group_cases.hpp"

namespace greedy_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

Outcome pruned_by(const MaskPolicy& policy, const std::vector<float>& x) {
  const std::int64_t groups = static_cast<std::int64_t>(x.size()) / decision_size(policy);
  return pruned([&](const MaskRun& run) { policy.rule->prune(policy, {}, run); }, x, groups);
}

double error_of(const char* text, const std::vector<float>& x) {
  const MaskPolicy policy = parse_mask(text);
  return policy.rule->error(policy, x.data(), static_cast<std::int64_t>(x.size()), 0);
}

}  // namespace

TEST_CASE("mask greedy: the pattern of the text decides", "[fast]") {
  const std::vector<float> x = {4, 1, -3, 0.5F, 2, 2, -1, 8};
  CHECK(pruned_by(parse_mask("greedy(2:4)"), x).y == std::vector<float>{4, 0, -3, 0, 2, 0, 0, 8});
  CHECK(pruned_by(parse_mask("greedy(1:4)"), x).y == std::vector<float>{4, 0, 0, 0, 0, 0, 0, 8});
  CHECK(pruned_by(parse_mask("greedy(1:2)"), x).y == std::vector<float>{4, 0, -3, 0, 2, 0, 0, 8});
  CHECK(pruned_by(parse_mask("greedy(4:8)"), x).y == std::vector<float>{4, 0, -3, 0, 2, 0, 0, 8});
  CHECK(pruned_by(parse_mask("greedy(2:8)"), x).y == std::vector<float>{4, 0, 0, 0, 0, 0, 0, 8});
}

TEST_CASE("mask greedy: the error is what it prunes", "[fast]") {
  // sparsity.md, 1f, vectors 1 and 2.
  CHECK(error_of("greedy(1:2)", {3, 1}) == 1);
  CHECK(error_of("greedy(2:4)", {1, 2, 3, 4}) == 5);
  CHECK(error_of("greedy(4:4)", {1, 2, 3, 4}) == 0);
  const std::vector<float> x = {0x1p-100F, -0x1p100F, 0x1p-101F, 0x1p99F};
  CHECK(error_of("greedy(2:4)", x) == 0x1p-200 + 0x1p-202);
}

TEST_CASE("mask greedy: draws nothing, is biased, takes repair and refresh", "[fast]") {
  const MaskPolicy policy = parse_mask("greedy(2:4,repair=absorb,refresh=40)");
  CHECK(policy.rule->span == MaskSpan::group);
  CHECK_FALSE(policy.rule->random);
  CHECK_FALSE(policy.rule->unbiased);
  CHECK(policy.repair == Repair::absorb);
  CHECK(policy.refresh == 40);
  CHECK(kept_share(policy) == 0.5);
  CHECK_THROWS_AS(parse_mask("greedy(4:8.pairwise)"), Error);
  CHECK_THROWS_WITH(parse_mask("greedy(4:8.pairwise)"),
                    Catch::Contains("greedy(4:8.pairwise)") && Catch::Contains("expected"));
}

}  // namespace greedy_test
