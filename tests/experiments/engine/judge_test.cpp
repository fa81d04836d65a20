// Verdicts: within tolerance, beyond it by chance, beyond it for certain.
#include "experiments/engine/judge.hpp"

#include <cmath>

#include "tests/catch.hpp"

using namespace numemu::experiments;

TEST_CASE("judge: predictions hold, fail or stay undecided", "[fast]") {
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

TEST_CASE("judge: Holm's procedure takes all of a kind together", "[fast]") {
  // One-sided p = 0.0228, 2 standard errors beyond the tolerance. The first must pass 0.05, of two
  // 0.025, of three 0.0167.
  const auto verdicts = [](int count) {
    Judged judged;
    for (int i = 0; i < count; ++i) judged.add("", 0, 0.5, 0.2, 0.1);
    std::vector<std::string> all;
    for (const Finding& finding : judged.findings()) all.push_back(finding.verdict);
    return all;
  };
  CHECK(verdicts(1) == std::vector<std::string>{"fails"});
  CHECK(verdicts(2) == std::vector<std::string>{"fails", "fails"});
  CHECK(verdicts(3) == std::vector<std::string>(3, "undecided"));
  CHECK(Judged().findings().empty());
}

TEST_CASE("judge: an error that is not known decides nothing", "[fast]") {
  Judged judged;
  judged.add("far", 0, 100, HUGE_VAL, 0.1);
  judged.add("near", 0, 0.05, HUGE_VAL, 0.1);
  const std::vector<Finding> findings = judged.findings();
  CHECK(findings[0].verdict == "undecided");
  CHECK(findings[0].low == -HUGE_VAL);
  CHECK(findings[0].high == HUGE_VAL);
  CHECK(findings[1].verdict == "holds");
  const Finding known = unjudged("known", 1, 2, 3);
  CHECK(known.verdict.empty());
  CHECK(known.high == Approx(2 + 3 * 1.959964).epsilon(1e-7));
}

TEST_CASE("judge: claims of a sign", "[fast]") {
  const std::vector<double> above = {0.001, 0.999, 0.4, 0.02}, below = {0.999, 0.001, 0.6, 0.98};
  // 0.001 passes 0.0125; 0.02 is above 0.05 / 3.
  CHECK(sign_verdicts(above, below) ==
        std::vector<std::string>{"holds", "fails", "undecided", "undecided"});
  CHECK(sign_verdicts({0.02}, {0.98}) == std::vector<std::string>{"holds"});
  CHECK(sign_verdicts({}, {}).empty());
}
