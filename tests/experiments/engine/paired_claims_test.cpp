// Claims about paired differences: probabilities by Student's law, corrected together.
#include <cmath>

#include "experiments/engine/study.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::experiments;

TEST_CASE("one-sided tails of a paired difference", "[fast]") {
  const stats::PairedInterval d = stats::paired_interval({1.0, 2.0, 3.0});
  const double t = 2 * std::sqrt(3.0), half = t / std::sqrt(2 + t * t) / 2;
  CHECK(tails(d, 0).above == Approx(0.5 - half).epsilon(1e-6));
  CHECK(tails(d, 0).below == Approx(0.5 + half).epsilon(1e-6));
  CHECK(tails(d, 4).above == Approx(0.5 + half).epsilon(1e-6));
  const stats::PairedInterval equal = stats::paired_interval({3.0, 3.0});
  CHECK(tails(equal, 2).above == 0);
  CHECK(tails(equal, 2).below == 1);
  CHECK(tails(equal, 4).above == 1);
  CHECK(tails(equal, 4).below == 0);
  CHECK(tails(equal, 3).above == 1);
  CHECK(tails(equal, 3).below == 1);
  CHECK(tails(stats::paired_interval({3.0}), 0).above == 1);
}

TEST_CASE("answers of both are compared by the test that gives their interval", "[fast]") {
  const stats::PairedAnswers answers{800, 30, 10, 1000};
  const stats::Interval ends = stats::paired_difference(30, 10, 1000);
  // McNemar's: (30 - 10) / sqrt(30 + 10).
  CHECK(p_value(answers, 0) == Approx(std::erfc(std::sqrt(10.0) / std::sqrt(2.0))).epsilon(1e-9));
  for (const double end : {ends.low, ends.high}) CHECK(p_value(answers, end) == Approx(0.05));
  CHECK(tails(answers, ends.low).above == Approx(0.025));
  CHECK(tails(answers, ends.low).below == Approx(0.975));
  CHECK(tails(answers, ends.high).below == Approx(0.025));
  const stats::PairedAnswers none{800, 0, 0, 1000};
  CHECK(p_value(none, 0) == 1);
  CHECK(tails(none, 0).above == 1);
  CHECK(tails(none, -0.005).above < 0.025);
}

TEST_CASE("claims are judged together", "[fast]") {
  const stats::PairedInterval d = stats::paired_interval({1.0, 2.0, 3.0});
  // Two degrees of freedom: P(|T| > t) = 1 - t / sqrt(2 + t^2); t = 2 sqrt(3).
  const double t = 2 * std::sqrt(3.0);
  CHECK(p_value(d, 0) == Approx(1 - t / std::sqrt(2 + t * t)).epsilon(1e-6));
  CHECK(p_value(d, 2) == Approx(1));
  CHECK(p_value(d, d.low) == Approx(0.05).epsilon(1e-6));
  CHECK(p_value(stats::paired_interval({3.0}), 0) == 1);
  CHECK(p_value(stats::paired_interval({3.0, 3.0}), 0) == 0);
  CHECK(p_value(stats::paired_interval({3.0, 3.0}), 3) == 1);
  CHECK(p_value(stats::paired_interval({3.0, HUGE_VAL}), 0) == 1);
  CHECK(p_value(stats::paired_interval({3.0, NAN}), 0) == 1);

  const stats::PairedInterval clear = stats::paired_interval({10.0, 10.1, 9.9, 10.05}),
                              weak = stats::paired_interval({1.0, 2.0, 2.5, 0.6});
  PairedClaims alone;
  alone.add("weak", weak, 0);
  CHECK(alone.judged()[0].verdict == Verdict::holds);
  PairedClaims claims;
  claims.add("above", clear, 5);
  claims.add("below", clear, 15);
  claims.add("weak", weak, 0);
  claims.add("none", weak, 1.5);
  const std::vector<Finding> findings = claims.judged();
  CHECK(findings[0].verdict == Verdict::holds);
  CHECK(findings[1].verdict == Verdict::fails);
  CHECK(findings[1].predicted == 15);
  CHECK(findings[2].verdict == Verdict::undecided);
  CHECK(findings[3].verdict == Verdict::undecided);
}

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
