// Mask rule unstructured: its row, its share, and its error in closed form.
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/group_cases.hpp"

namespace unstructured_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("mask unstructured: the share is kept, and the error is what is pruned", "[fast]") {
  const std::vector<float> x = {4, 1, -3, 0.5F, 2, 2, -1, 8};
  const auto count = static_cast<std::int64_t>(x.size());
  const auto by = [&](const char* text) {
    const MaskPolicy policy = parse_mask(text);
    return pruned([&](const MaskRun& run) { policy.rule->prune(policy, {}, run); }, x, count).y;
  };
  const auto error = [&](const char* text) {
    const MaskPolicy policy = parse_mask(text);
    return policy.rule->error(policy, x.data(), count, 0);
  };
  CHECK(by("unstructured(0.5)") == std::vector<float>{4, 0, -3, 0, 2, 0, 0, 8});
  CHECK(error("unstructured(0.5)") == 1 + 0.25 + 4 + 1);
  CHECK(by("unstructured(0.125)") == std::vector<float>{0, 0, 0, 0, 0, 0, 0, 8});
  CHECK(error("unstructured(0.125)") == 16 + 1 + 9 + 0.25 + 4 + 4 + 1);
  CHECK(by("unstructured(0.95)") == x);
  CHECK(error("unstructured(0.95)") == 0);
}

TEST_CASE("mask unstructured: spans a tensor without a threshold, takes refresh", "[fast]") {
  const MaskPolicy policy = parse_mask("unstructured(0.3,refresh=40)");
  CHECK(policy.rule->span == MaskSpan::tensor);
  CHECK(policy.rule->threshold == nullptr);
  CHECK_FALSE(policy.rule->random);
  CHECK_FALSE(policy.rule->unbiased);
  CHECK(policy.refresh == 40);
  CHECK(kept_share(policy) == 0.3);
  CHECK_THROWS_AS(parse_mask("unstructured(1)"), Error);
  CHECK_THROWS_AS(parse_mask("unstructured(0)"), Error);
}

}  // namespace unstructured_test
