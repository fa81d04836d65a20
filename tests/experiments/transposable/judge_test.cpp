// Verdicts: within tolerance, beyond it by chance, beyond it for certain.
#include "experiments/transposable/judge.hpp"

#include "tests/catch.hpp"

using namespace numemu::experiments;

TEST_CASE("transposable: predictions hold, fail or stay undecided", "[fast]") {
  Judged judged;
  judged.add("near", 1, 1.005, 0.5, 0.01);
  judged.add("far but uncertain", 1, 1.5, 0.4, 0.01);
  judged.add("far", 1, 1.5, 0.01, 0.01);
  judged.add("far, no error", 1, 2, 0, 0.01);
  const std::vector<Finding> findings = judged.findings();
  REQUIRE(findings.size() == 4);
  CHECK(findings[0].verdict == "holds");
  CHECK(findings[1].verdict == "undecided");
  CHECK(findings[2].verdict == "fails");
  CHECK(findings[3].verdict == "fails");
  CHECK(findings[1].low == Approx(1.5 - 1.96 * 0.4).margin(1e-4));
  CHECK(findings[1].high == Approx(1.5 + 1.96 * 0.4).margin(1e-4));
  CHECK(exact_finding("none broken", 0, 0, true).verdict == "holds");
  CHECK(exact_finding("some broken", 0, 3, false).verdict == "fails");
}
