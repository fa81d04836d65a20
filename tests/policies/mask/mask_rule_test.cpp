// Mask texts: what is read, what is printed, what is refused.
#include "policies/mask/mask_rule.hpp"

#include <set>
#include <string>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace mask_rule_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;

TEST_CASE("mask rule: the canonical text gives the same policy back", "[fast]") {
  const std::pair<const char*, const char*> texts[] = {
      {"greedy(2:4)", "greedy(2:4)"},
      {" greedy( 2:4 , remainder=pad )", "greedy(2:4,remainder=pad)"},
      {"greedy(1:2,repair=absorb,axis=reduction)", "greedy(1:2,axis=reduction,repair=absorb)"},
      {"greedy(4:8,refresh=40,remainder=error)", "greedy(4:8,refresh=40)"},
      {"transposable(16:32,layout=channel,refresh=0)",
       "transposable(16:32,layout=channel,refresh=0)"},
      {"random(8:16)", "random(8:16)"},
      {"mvue(1:2,axis=batch)", "mvue(1:2,axis=batch)"},
      {"unstructured(0.50)", "unstructured(0.5)"},
      {"stochastic(0.9,at=input,history=4,law=lognormal)",
       "stochastic(0.9,law=lognormal,history=4,at=input)"}};
  for (const auto& [text, canonical] : texts) {
    INFO(text);
    CHECK(to_string(parse_mask(text)) == canonical);
    CHECK(to_string(parse_mask(canonical)) == canonical);
  }
}

TEST_CASE("mask rule: what is wrong is named, with what was expected", "[fast]") {
  const std::pair<const char*, const char*> texts[] = {
      {"2:4", "unknown mask '2:4'; expected a rule with it, such as greedy(2:4)"},
      {"greedy(2:4", "mask 'greedy(2:4': expected a closing parenthesis at its end"},
      {"gredy(2:4)", "unknown mask 'gredy'; did you mean 'greedy'"},
      {"greedy", "expected greedy(N:M), options among remainder="},
      {"greedy(5:4)", "1 <= N <= M <= 16"},
      {"greedy(2:17)", "1 <= N <= M <= 16"},
      {"transposable(2:33)", "1 <= N <= M <= 32"},
      {"transposable(2)", "1 <= N <= M <= 32"},
      {"unstructured(2:4)", "a share between 0 and 1"},
      {"unstructured(1)", "a share between 0 and 1"},
      {"stochastic(nan)", "a share between 0 and 1"},
      {"greedy(2:4,remainder=keep)", "remainder=error or remainder=pad or remainder=dense"},
      {"greedy(2:4,layout=tile)", "options among"},
      {"greedy(2:4,refresh=-1)", "refresh= a whole number"},
      {"greedy(2:4,refresh)", "key=value"},
      {"greedy(2:4,refresh=1,refresh=2)", "each option once"},
      {"unstructured(0.5,remainder=pad)", "options among"},
      {"stochastic(0.5,at=output)", "at=operand or at=input"}};
  for (const auto& [text, words] : texts) {
    INFO(text);
    CHECK_THROWS_WITH(parse_mask(text), Contains(words));
  }
}

TEST_CASE("mask rule: every rule says what it is and prunes as it says", "[fast]") {
  std::set<std::string> names;
  for (const MaskRule* rule : all_mask_rules()) {
    INFO(rule->name);
    CHECK(names.insert(rule->name).second);
    CHECK(&find_mask_rule(rule->name) == rule);
    CHECK(std::string(rule->summary).size() > 10);
    CHECK(std::string(rule->source).size() > 3);
    REQUIRE(rule->prune != nullptr);
    CHECK((!rule->unbiased || rule->random));
    CHECK((rule->threshold == nullptr || rule->span == MaskSpan::tensor));
    const MaskPolicy policy =
        parse_mask(std::string(rule->name) + (rule->span == MaskSpan::tensor ? "(0.5)" : "(2:4)"));
    // What is kept (a one in `keep`) is what is not +0 in y, for numbers without zeros.
    const std::int64_t size = decision_size(policy) == 1 ? 64 : 4 * decision_size(policy);
    std::vector<float> x(size), y(size);
    std::vector<std::uint8_t> keep(size);
    for (std::int64_t i = 0; i < size; ++i) x[i] = static_cast<float>((i * 37 % 101) - 50.5);
    rule->prune(policy, {.stream = Stream::mask},
                {x.data(), y.data(), keep.data(), size / decision_size(policy), 0, 30.0});
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      CHECK((y[i] != 0) == (keep[i] == 1));
      CHECK((rule->unbiased || y[i] == 0 || y[i] == x[i]));
      kept += keep[i];
    }
    CHECK(kept > 0);
    if (rule->span != MaskSpan::tensor || rule->threshold == nullptr) CHECK(kept <= size / 2);
  }
  CHECK(names.contains("greedy"));
}

}  // namespace mask_rule_test
