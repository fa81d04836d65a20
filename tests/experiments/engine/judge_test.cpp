// Verdicts: what an interval shows, does not show, and cannot see.
#include "experiments/engine/judge.hpp"

#include <cmath>

#include "tests/catch.hpp"

namespace judge_test {

using namespace numemu;
using namespace numemu::experiments;

TEST_CASE("judge: three classes by the interval", "[fast]") {
  // int8 of a network: -0.50 points [-2.87, +1.88] does not show a loss of half a point.
  CHECK(verdict_on({-0.0287, 0.0188}, at_least(-0.005)) == Verdict::undecided);
  CHECK(verdict_on({-0.004, 0.01}, at_least(-0.005)) == Verdict::holds);
  CHECK(verdict_on({-0.02, -0.006}, at_least(-0.005)) == Verdict::fails);
  CHECK(verdict_on({0.2, 0.9}, at_most(1)) == Verdict::holds);
  CHECK(verdict_on({0.2, 1.1}, at_most(1)) == Verdict::undecided);
  CHECK(verdict_on({1.1, 1.2}, at_most(1)) == Verdict::fails);
  CHECK(verdict_on({1, 1}, near(1, 0)) == Verdict::holds);
  CHECK(verdict_on({0.5, 1.5}, near(1, 0.1)) == Verdict::undecided);
  CHECK(verdict_on({-HUGE_VAL, HUGE_VAL}, at_most(1)) == Verdict::undecided);
  CHECK(verdict_on({NAN, NAN}, at_most(1)) == Verdict::undecided);
}

TEST_CASE("judge: an interval that is wider than what is claimed decides nothing", "[fast]") {
  Judged judged;
  judged.add("spot on, but uncertain", 20, 20, 5, 1);
  judged.add("spot on", 20, 20, 0.1, 1);
  const std::vector<Finding> findings = judged.findings();
  CHECK(findings[0].verdict == Verdict::undecided);
  CHECK(findings[1].verdict == Verdict::holds);
}

TEST_CASE("judge: a closed form holds where the interval lies within 2 %", "[fast]") {
  CHECK(closed_form("", 1, 1.01, 0.004).verdict == Verdict::holds);
  // The interval reaches 1.0218; 18 % off with an error of 10 % shows nothing.
  CHECK(closed_form("", 1, 1.01, 0.006).verdict == Verdict::undecided);
  CHECK(closed_form("", 1, 1.18, 0.1).verdict == Verdict::undecided);
  // Beyond 1.02 by four errors, and by less.
  CHECK(closed_form("", 1, 1.045, 0.006).verdict == Verdict::fails);
  CHECK(closed_form("", 1, 1.043, 0.006).verdict == Verdict::undecided);
  CHECK(closed_form("", 1, 1.5, 0.1).verdict == Verdict::fails);
  CHECK(closed_form("", 1, 1.0, 0.3).verdict == Verdict::undecided);
  CHECK(closed_form("", -2, -2, 0).tolerance == Approx(0.04).epsilon(1e-4));
  CHECK(closed_form("", 1, 1.18, 0.02, true, 0.3).verdict == Verdict::holds);
  CHECK(half_width(closed_form("", 1, 1, 0.1)) == Approx(0.196).epsilon(1e-4));
  CHECK(bias_tolerance(64) == Approx(0.16));
  CHECK(closed_form("", 1, 1.0, HUGE_VAL).verdict == Verdict::undecided);
  // A sample too small to know its error decides nothing but identities.
  CHECK(closed_form("", 1, 1 + 1e-15, 1e-16, false).verdict == Verdict::holds);
  const Finding few = closed_form("x", 1, 1.001, 0.001, false);
  CHECK(few.verdict == Verdict::undecided);
  CHECK(few.what == "x; too few numbers tell its error");
  CHECK(closed_form("", 1, 1.0, NAN).verdict == Verdict::undecided);
  CHECK(closed_form("", 1, 1 + 1e-7, 0).verdict == Verdict::holds);
  CHECK(closed_form("", 0, 0, 0).verdict == Verdict::holds);
  CHECK(closed_form("", 0, 1, 0).verdict == Verdict::fails);
}

TEST_CASE("judge: predictions hold, fail or stay undecided", "[fast]") {
  Judged judged;
  judged.add("near", 1, 1.005, 0.001, 0.01);
  judged.add("far but uncertain", 1, 1.5, 0.4, 0.01);
  judged.add("far", 1, 1.5, 0.01, 0.01);
  judged.add("far, no error", 1, 2, 0, 0.01);
  const std::vector<Finding> findings = judged.findings();
  REQUIRE(findings.size() == 4);
  CHECK(findings[0].verdict == Verdict::holds);
  CHECK(findings[1].verdict == Verdict::undecided);
  CHECK(findings[2].verdict == Verdict::fails);
  CHECK(findings[3].verdict == Verdict::fails);
  CHECK(findings[1].low == Approx(1.5 - 1.96 * 0.4).margin(1e-4));
  CHECK(findings[1].high == Approx(1.5 + 1.96 * 0.4).margin(1e-4));
  CHECK(exact_finding("none broken", 0, 0, true).verdict == Verdict::holds);
  CHECK(exact_finding("some broken", 0, 3, false).verdict == Verdict::fails);
  CHECK_FALSE(exact_finding("none broken", 0, 0, true).self_check);
  CHECK(self_check("the same sum", 0, 0, true).self_check);
}

TEST_CASE("judge: Holm's procedure takes all of a kind together", "[fast]") {
  // One-sided p = 0.0228, 2 standard errors beyond the tolerance. The first must pass 0.05, of two
  // 0.025, of three 0.0167.
  const auto verdicts = [](int count) {
    Judged judged;
    for (int i = 0; i < count; ++i) judged.add("", 0, 0.5, 0.2, 0.1);
    std::vector<Verdict> all;
    for (const Finding& finding : judged.findings()) all.push_back(finding.verdict);
    return all;
  };
  CHECK(verdicts(1) == std::vector{Verdict::fails});
  CHECK(verdicts(2) == std::vector(2, Verdict::fails));
  CHECK(verdicts(3) == std::vector(3, Verdict::undecided));
  CHECK(Judged().findings().empty());
}

TEST_CASE("judge: an error that is not known decides nothing", "[fast]") {
  Judged judged;
  judged.add("far", 0, 100, HUGE_VAL, 0.1);
  judged.add("near", 0, 0.05, HUGE_VAL, 0.1);
  judged.add("near, known", 0, 0.05, 0, 0.1);
  const std::vector<Finding> findings = judged.findings();
  CHECK(findings[0].verdict == Verdict::undecided);
  CHECK(findings[0].low == -HUGE_VAL);
  CHECK(findings[0].high == HUGE_VAL);
  CHECK(findings[1].verdict == Verdict::undecided);
  CHECK(findings[2].verdict == Verdict::holds);
  const Finding known = unjudged("known", 1, 2, 3);
  CHECK(known.verdict == Verdict::undecided);
  CHECK(known.high == Approx(2 + 3 * 1.959964).epsilon(1e-7));
}

TEST_CASE("judge: a model's prediction holds by its interval, fails by four errors", "[fast]") {
  CHECK(model_finding("x", 1, 1.05, 0.001, 0.1).verdict == Verdict::holds);
  CHECK(model_finding("x", 1, 1.05, 0.02, 0.1).verdict == Verdict::holds);
  CHECK(model_finding("x", 1, 1.05, 0.03, 0.1).verdict == Verdict::undecided);
  CHECK(model_finding("x", 1, 1.05, 0.03, 0.1).tolerance == 0.1);
  CHECK(std::isnan(unjudged("x", 1, 1.05, 0.03).tolerance));
  CHECK(model_finding("x", 1, 1.05, 0.05, 0.1).verdict == Verdict::undecided);
  CHECK(model_finding("x", 1, 1.2, 0.05, 0.1).verdict == Verdict::undecided);
  CHECK(model_finding("x", 1, 1.2, 0.01, 0.1).verdict == Verdict::fails);
}

TEST_CASE("judge: a small sample decides no closed form", "[fast]") {
  CHECK(closed_form("", 1, 1.5, 0.1, true).verdict == Verdict::fails);
  CHECK(closed_form("", 1, 1.5, 0.1, false).verdict == Verdict::undecided);
}

TEST_CASE("judge: by the distance, NaN fails", "[fast]") {
  CHECK(verdict_by_distance(1, 1, 3) == Verdict::holds);
  CHECK(verdict_by_distance(3, 1, 3) == Verdict::undecided);
  CHECK(verdict_by_distance(3.1, 1, 3) == Verdict::fails);
  CHECK(verdict_by_distance(NAN, 1, 3) == Verdict::fails);
}

TEST_CASE("judge: a test of equality rejects alone what lies beyond the tolerance", "[fast]") {
  Judged judged;
  constexpr double kTolerance = 0.01, kUnlikely = 1e-9;
  for (const double measured : {1.005, 1.01, 1.02}) {
    judged.add(Finding{"", 1, measured, measured - 0.001, measured + 0.001}, kTolerance, kUnlikely);
    judged.add(Finding{"", 1, measured, measured - 0.001, measured + 0.001}, kTolerance, 0.2);
  }
  std::vector<Verdict> verdicts;
  for (const Finding& finding : judged.findings()) verdicts.push_back(finding.verdict);
  const Verdict open = Verdict::undecided;
  CHECK(verdicts == std::vector{Verdict::holds, Verdict::holds, open, open, Verdict::fails, open});
}

TEST_CASE("judge: claims of a sign and of a side", "[fast]") {
  const auto verdicts_of = [](const std::vector<Finding>& findings) {
    std::vector<Verdict> verdicts;
    for (const Finding& finding : findings) verdicts.push_back(finding.verdict);
    return verdicts;
  };
  const std::vector<double> above = {0.001, 0.999, 0.4, 0.02}, below = {0.999, 0.001, 0.6, 0.98};
  // Of both sides: 0.002 passes 0.0125; 0.04 is above 0.05 / 3.
  std::vector<Finding> findings(4);
  judge_signs(findings, above, below);
  CHECK(verdicts_of(findings) ==
        std::vector{Verdict::holds, Verdict::fails, Verdict::undecided, Verdict::undecided});
  CHECK(findings[0].what.find("Holm") == std::string::npos);
  findings.resize(2);
  judge_signs(findings, {0.02, 0.015}, {0.98, 0.985});  // each alone would do
  for (const Finding& finding : findings) CHECK_THAT(finding.what, Catch::EndsWith(kAfterHolm));
  findings.resize(1);
  judge_signs(findings, {0.02}, {0.98});
  CHECK(findings[0].verdict == Verdict::holds);
  judge_signs(findings, {0.03}, {0.97});  // 0 lies in the interval of 95 %
  CHECK(findings[0].verdict == Verdict::undecided);
  judge_signs({}, {}, {});

  findings = {unjudged("above", 1, 2, 0), unjudged("below", 1, 0, 0), unjudged("near", 1, 1.1, 0)};
  judge_sides(findings, {0.001, 0.001, 0.5});
  CHECK(verdicts_of(findings) == std::vector{Verdict::holds, Verdict::fails, Verdict::undecided});
}

TEST_CASE("the worse of two findings is nearer to the limit of what is claimed, or farther out",
          "[fast]") {
  // Losses that shall stay above -0.5: the largest is the worst, the gain is the best.
  const auto loss = [](double measured) {
    return interval_finding("loss", -0.5, measured, {measured - 0.1, measured + 0.1},
                            at_least(-0.5));
  };
  CHECK(worse(loss(-0.21), loss(-0.05)));
  CHECK_FALSE(worse(loss(0.6), loss(-0.05)));
  CHECK(worse(loss(-0.9), loss(-0.7)));
  CHECK(worse(loss(-0.45), loss(-0.21)));  // undecided is worse than holds
  // Decibels within 1 dB: the difference counts, not its share.
  CHECK(worse(model_finding("loud", 32.55, 32.07, 0.01, 1),
              model_finding("soft", 13.45, 13.67, 0.01, 1)));
  // A tolerance that is a share of the prediction.
  CHECK(worse(model_finding("small", 0.1, 0.11, 0, 0.02), model_finding("large", 10, 10.5, 0, 2)));
  std::vector<Finding> signs = {unjudged("small gain", 0, 1, 0.1),
                                unjudged("large gain", 0, 70, 0.1)};
  judge_signs(signs, {0.001, 0.001}, {1, 1});
  CHECK(worse(signs[0], signs[1]));
  judge_sides(signs, {0.001, 0.001});
  CHECK(worse(signs[0], signs[1]));
  CHECK(worse(exact_finding("near the bound", 1, 0.5, true, at_most(1)),
              exact_finding("far below it", 1, 0.2, true, at_most(1))));
  // What has no verdict is no claim's worst finding beside one that has.
  const std::vector<Finding> none = without_verdict({loss(-0.9)}, "too short");
  CHECK(none[0].verdict == Verdict::none);
  CHECK(none[0].what == "loss; too short");
  CHECK(worse(loss(0.6), none[0]));
  CHECK_FALSE(worse(none[0], loss(0.6)));
  Finding corrected = loss(0);
  corrected.what += kAfterHolm;
  CHECK(without_verdict({corrected}, "too short")[0].what == "loss; too short");
  // Without limits the share decides.
  CHECK(worse(exact_finding("far", 1, 1.2, true), exact_finding("near", 1, 1.01, true)));
}

}  // namespace judge_test
