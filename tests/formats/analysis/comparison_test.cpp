// Verdicts and intervals at the edges where they turn.
#include "formats/analysis/comparison.hpp"

#include <cmath>

#include "tests/catch.hpp"

namespace comparison_test {

using namespace numemu;

TEST_CASE("means: holds within 4 standard errors, the larger of the two", "[fast]") {
  const Figure predicted{1, 0.01};  // standard error 0.001 at n = 10000
  CHECK(compare_mean(predicted, {1.0039, 0.01}, 10000).verdict == Verdict::holds);
  CHECK(compare_mean(predicted, {1.0041, 0.01}, 10000).verdict == Verdict::fails);
  CHECK(compare_mean(predicted, {1.0079, 0.04}, 10000).verdict == Verdict::holds);
  const Comparison c = compare_mean(predicted, {1.002, 0.01}, 10000);
  CHECK(c.low == Approx(1.002 - 1.96e-3).epsilon(1e-6));
  CHECK(c.high == Approx(1.002 + 1.96e-3).epsilon(1e-6));
}

TEST_CASE("means: undecided where the law shows too little of itself", "[fast]") {
  CHECK(compare_mean({INFINITY, 0}, {41, 100}, 1000).verdict == Verdict::undecided);
  CHECK(compare_mean({1, 1e6}, {0.5, 1}, 1000).verdict == Verdict::undecided);
  CHECK(compare_mean({1, INFINITY}, {0.5, 1}, 1000).verdict == Verdict::undecided);
  CHECK(compare_mean({0, 1}, {0.1, 1}, 10000, 1).verdict == Verdict::fails);
  CHECK(compare_mean({0, 1}, {0.03, 1}, 10000, 1).verdict == Verdict::holds);
  CHECK(compare_mean({INFINITY, 0}, {INFINITY, 0}, 1000).verdict == Verdict::holds);
}

TEST_CASE("masses: exact binomial tails and Clopper-Pearson intervals", "[fast]") {
  const auto mass = [](double p, double count) {
    return compare_mass({p, p * (1 - p)}, {count / 1e6, 0}, 1000000);
  };
  CHECK(mass(0, 0).verdict == Verdict::holds);
  CHECK(mass(0, 1).verdict == Verdict::fails);
  CHECK(mass(1e-9, 0).verdict == Verdict::holds);
  CHECK(mass(1e-9, 1).verdict == Verdict::holds);   // probability 1e-3
  CHECK(mass(1e-11, 1).verdict == Verdict::fails);  // probability 1e-5
  CHECK(mass(1, 1e6).verdict == Verdict::holds);
  CHECK(mass(1, 999999).verdict == Verdict::fails);
  CHECK(mass(0.01, 10000 + 390).verdict == Verdict::holds);
  CHECK(mass(0.01, 10000 + 410).verdict == Verdict::fails);
  CHECK(mass(0.01, 10000 - 410).verdict == Verdict::fails);
  // Rule of three and a bit: 1 - 0.025^(1/n).
  CHECK(mass(0, 0).high == Approx(3.68887e-6).epsilon(1e-5));
  CHECK(mass(0, 0).low == 0);
  CHECK(mass(1, 1e6).high == 1);
}

TEST_CASE("samples: rounding errors pass, anything more fails unless the bits explain it",
          "[fast]") {
  CHECK(compare_sample({1, 0}, {1 + 1e-12, 0}, 1000).verdict == Verdict::holds);
  CHECK(compare_sample({1, 0}, {1 + 1e-6, 0}, 1000).verdict == Verdict::fails);
  CHECK(compare_sample({1, 1e-9}, {1 + 1e-6, 0}, 1000).verdict == Verdict::holds);
  CHECK(compare_sample({0, 0}, {1e-14, 0}, 1000, 1e-3).verdict == Verdict::holds);
  CHECK(compare_sample({INFINITY, 0}, {INFINITY, 0}, 10).verdict == Verdict::holds);
  CHECK(compare_sample({1, 0}, {INFINITY, 0}, 10).verdict == Verdict::fails);
}

}  // namespace comparison_test
