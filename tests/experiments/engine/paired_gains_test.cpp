// Paired gains: signs by Student's test, corrected together.
#include "experiments/engine/paired_gains.hpp"

#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::experiments;

TEST_CASE("paired gains: signs hold, fail and stay undecided", "[fast]") {
  const auto gain = [](const char* what, const std::vector<double>& differences) {
    return PairedGain{what, stats::paired_interval(differences)};
  };
  // t = 24.5 and 2.6 with 4 degrees of freedom: p = 8e-6 and 0.03, which four tests do not allow.
  const std::vector<Finding> findings =
      judge_gains({gain("a", {1, 1.1, 0.9, 1.1, 0.9}), gain("b", {-1, -1.1, -0.9, -1.1, -0.9}),
                   gain("c", {1, 0.1, 0.9, 0.2, 0.3}), gain("d", {1})});
  REQUIRE(findings.size() == 4);
  CHECK(findings[0].verdict == Verdict::holds);
  CHECK(findings[1].verdict == Verdict::fails);
  CHECK(findings[2].verdict == Verdict::undecided);
  CHECK(findings[3].verdict == Verdict::undecided);
  // Without spread the sign is certain, but for a difference of 0.
  const std::vector<Finding> certain =
      judge_gains({gain("e", {2, 2}), gain("f", {-2, -2}), gain("g", {0, 0})});
  CHECK(certain[0].verdict == Verdict::holds);
  CHECK(certain[1].verdict == Verdict::fails);
  CHECK(certain[2].verdict == Verdict::undecided);
  CHECK(findings[0].what == "a (claimed above 0)");
  CHECK(judge_gains({gain("c", {1, 0.1, 0.9, 0.2, 0.3})})[0].verdict == Verdict::holds);
}
