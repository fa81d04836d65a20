// The three rules over tiles: what they write, their error, which patterns they refuse.
#include "policies/mask/rules/transposable.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "formats/error.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/mask/rules/transposable_greedy.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace numemu::policies {
extern const MaskRule mask_transposable, mask_transposable_greedy, mask_transposable_two_approx;
}

namespace numemu::policies::transposable_test {

namespace {

const MaskRule* const kRules[] = {&mask_transposable, &mask_transposable_greedy,
                                  &mask_transposable_two_approx};

MaskPolicy policy_of(const MaskRule& rule, int kept, int group) {
  MaskPolicy policy;
  policy.rule = &rule;
  policy.pattern.kept = kept;
  policy.pattern.group = group;
  return policy;
}

TileMask expected(const MaskRule& rule, const float* x, int size, int kept) {
  if (&rule == &mask_transposable) return exact_tile(x, size, kept);
  return &rule == &mask_transposable_greedy ? keep_heaviest_filled(x, size, kept)
                                            : prune_lightest(x, size, kept);
}

TEST_CASE("transposable rules: tile after tile, whatever is asked", "[fast]") {
  for (const MaskRule* rule : kRules)
    for (const int size : {2, 4, 8, 16, 32})
      for (const int kept : {1, size / 2}) {
        const MaskPolicy policy = policy_of(*rule, kept, size);
        const int tiles = 5, elements = size * size;
        const std::vector<float> x = testing::sample("normal", std::int64_t{tiles} * elements, 40);
        std::vector<float> y(x.size(), 9), alone(x.size(), 9);
        std::vector<std::uint8_t> keep(x.size(), 9);
        rule->prune(policy, {}, MaskRun{x.data(), y.data(), keep.data(), tiles, 3});
        rule->prune(policy, {}, MaskRun{x.data(), alone.data(), nullptr, tiles, 0});
        CHECK(y == alone);
        for (int t = 0; t < tiles; ++t) {
          const float* tile = x.data() + t * elements;
          const TileMask mask = tile_mask(keep.data() + t * elements, size);
          CHECK(mask == expected(*rule, tile, size, kept));
          CHECK(keeps_at_most(mask, kept));
          double error = 0;
          for (int e = 0; e < elements; ++e) {
            const double d = double{tile[e]} - y[static_cast<std::size_t>(t * elements + e)];
            error += d * d;
          }
          CHECK(rule->error(policy, tile, elements, 0) == error);
        }
      }
}

TEST_CASE("transposable rules: patterns of single elements up to 32", "[fast]") {
  for (const MaskRule* rule : kRules) {
    CHECK(rule->span == MaskSpan::tile);
    CHECK_FALSE(rule->random);
    CHECK_NOTHROW(rule->check(policy_of(*rule, 32, 32)));
    CHECK_THROWS_AS(rule->check(policy_of(*rule, 16, 33)), Error);
    CHECK_THROWS_AS(rule->check(policy_of(*rule, 0, 4)), Error);
    CHECK_THROWS_AS(rule->check(policy_of(*rule, 5, 4)), Error);
    MaskPolicy pairs = policy_of(*rule, 4, 8);
    pairs.pattern.pairwise = true;
    CHECK_THROWS_WITH(rule->check(pairs), Catch::Contains(rule->name) && Catch::Contains("pairs"));
  }
}

}  // namespace
}  // namespace numemu::policies::transposable_test
