// Gains paired by seed: their one-sided tests, and what leaves none.
#include "experiments/engine/gains.hpp"

#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::experiments;

TEST_CASE("gains: signs by Student's tests, corrected over all", "[fast]") {
  const auto verdict = [](const std::vector<double>& differences, int others) {
    std::vector<Gain> gains(1 + others, {"none", stats::paired_interval({-1, 1})});
    gains[0] = {"some", stats::paired_interval(differences)};
    const std::vector<Finding> findings = judged_gains(gains);
    CHECK(findings[0].what == "some (claimed above 0)");
    CHECK(findings[0].measured == Approx(gains[0].difference.mean));
    return findings[0].verdict;
  };
  // t = 2 sqrt(3) with 2 degrees of freedom: a tail of 0.037.
  CHECK(verdict({1, 2, 3}, 0) == Verdict::holds);
  CHECK(verdict({-1, -2, -3}, 0) == Verdict::fails);
  CHECK(verdict({1, 2, 3}, 1) == Verdict::undecided);
  CHECK(verdict({2}, 0) == Verdict::undecided);
  CHECK(verdict({2, 2}, 0) == Verdict::undecided);
  CHECK(judged_gains({}).empty());
}
